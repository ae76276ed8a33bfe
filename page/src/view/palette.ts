// Colours, as CSS variables of the theme and as pixels for canvases. The categories are Okabe and Ito's, told apart by
// people who see few colours, without the vermilion that holes have; sequences go from dark to light (viridis).
export type Rgb = [number, number, number];

export function parseColour(text: string): Rgb {
  const hex = text.trim().replace('#', '');
  const full = hex.length === 3 ? [...hex].map((c) => c + c).join('') : hex;
  return [0, 2, 4].map((i) => parseInt(full.slice(i, i + 2), 16)) as Rgb;
}

export const pixel = ([r, g, b]: Rgb): number => ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
export const css = ([r, g, b]: Rgb): string => `rgb(${r} ${g} ${b})`;

// Darkens or fades a pixel towards another colour, by quarters.
export const blend = (a: number, b: number, quarters: number): number => {
  const part = (shift: number): number =>
    ((((a >>> shift) & 255) * (4 - quarters) + ((b >>> shift) & 255) * quarters) >> 2) << shift;
  return (0xff000000 | part(0) | part(8) | part(16)) >>> 0;
};

export const mix = (a: Rgb, b: Rgb, share: number): Rgb => a.map((v, i) => Math.round(v + (b[i] - v) * share)) as Rgb;

export const kCategories: readonly Rgb[] = [
  '#0072b2', '#e69f00', '#009e73', '#cc79a7', '#56b4e9', '#f0e442', '#8a7fd1', '#a6761d', '#4d9221', '#c51b7d', '#35978f',
  '#7f7f7f'].map(parseColour);

const kViridis: readonly Rgb[] = ['#440154', '#472d7b', '#3b528b', '#2c728e', '#21918c', '#28ae80', '#5ec962', '#addc30',
  '#fde725'].map(parseColour);

// share from 0 to 1.
export function sequence(share: number): Rgb {
  const at = Math.max(0, Math.min(1, share)) * (kViridis.length - 1);
  const i = Math.min(kViridis.length - 2, Math.floor(at));
  return mix(kViridis[i], kViridis[i + 1], at - i);
}

// The theme's colours that canvases use, read from the style sheet.
export interface Theme {
  paper: Rgb;
  ink: Rgb;
  faint: Rgb;
  grid: Rgb;
  accent: Rgb;
  live: Rgb;
  pending: Rgb;
  stranded: Rgb;
  free: Rgb;
  privateFree: Rgb;
  reserved: Rgb;
  failure: Rgb;
}

const kNames: Record<keyof Theme, string> = {
  paper: '--paper', ink: '--ink', faint: '--faint', grid: '--grid', accent: '--accent', live: '--live', pending: '--pending',
  stranded: '--stranded', free: '--free', privateFree: '--private-free', reserved: '--reserved', failure: '--failure',
};

export function readTheme(): Theme {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(
    Object.entries(kNames).map(([key, name]) => [key, parseColour(style.getPropertyValue(name) || '#888888')])) as unknown as Theme;
}
