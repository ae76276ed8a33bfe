// Stacked areas in SVG, for a few dozen places: the parts of an estimate or a dry run, phase by phase.
import { bytes, byteTicks, shortBytes } from '../view/format';
import { h } from '../view/dom';
import { Tip } from '../view/tip';
import { css, kCategories } from '../view/palette';

export interface Area {
  name: string;
  values: number[];
}

const kWidth = 900;
const kHeight = 240;
const kLeft = 74;
const kBottom = 26;

function svg(tag: string, attributes: Record<string, string | number>, text = ''): SVGElement {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  if (text !== '') element.textContent = text;
  return element;
}

export function stackedAreas(title: string, places: string[], areas: Area[], limit: { name: string; bytes: number } | null): HTMLElement {
  const totals = places.map((_, i) => areas.reduce((sum, area) => sum + area.values[i], 0));
  let most = Math.max(1, ...totals);
  if (limit !== null && limit.bytes < 1.6 * most) most = Math.max(most, limit.bytes);
  most *= 1.04;
  const wide = (kWidth - kLeft) / places.length;
  const y = (value: number): number => 8 + (kHeight - kBottom - 8) * (1 - value / most);
  const root = svg('svg', { viewBox: `0 0 ${kWidth} ${kHeight}`, role: 'img', 'aria-label': `${title}: ${places.map((place, i) => `${place} ${bytes(totals[i])}`).join(', ')}` });
  for (const tick of byteTicks(most, 5)) {
    root.appendChild(svg('line', { x1: kLeft, x2: kWidth, y1: y(tick), y2: y(tick), class: 'grid-line' }));
    root.appendChild(svg('text', { x: kLeft - 6, y: y(tick) + 4, 'text-anchor': 'end' }, shortBytes(tick)));
  }
  const below = new Array<number>(places.length).fill(0);
  areas.forEach((area, k) => {
    const up: string[] = [];
    const down: string[] = [];
    places.forEach((_, i) => {
      const [low, high] = [y(below[i]), y(below[i] + area.values[i])];
      const [a, b] = [kLeft + i * wide, kLeft + (i + 1) * wide];
      up.push(`${a.toFixed(1)},${high.toFixed(1)}`, `${b.toFixed(1)},${high.toFixed(1)}`);
      down.unshift(`${b.toFixed(1)},${low.toFixed(1)}`, `${a.toFixed(1)},${low.toFixed(1)}`);
      below[i] = below[i] + area.values[i];
    });
    root.appendChild(svg('polygon', { points: [...up, ...down].join(' '), fill: css(kCategories[k % kCategories.length]), 'fill-opacity': 0.82 }));
  });
  if (limit !== null && limit.bytes <= most) {
    root.appendChild(svg('line', { x1: kLeft, x2: kWidth, y1: y(limit.bytes), y2: y(limit.bytes), class: 'limit-line' }));
    root.appendChild(svg('text', { x: kWidth - 4, y: y(limit.bytes) - 4, 'text-anchor': 'end' }, `${limit.name} ${bytes(limit.bytes)}`));
  }
  const every = Math.max(1, Math.ceil(places.length / Math.max(1, Math.floor((kWidth - kLeft) / 110))));
  places.forEach((place, i) => {
    if (i % every === 0) root.appendChild(svg('text', { x: kLeft + (i + 0.5) * wide, y: kHeight - 8, 'text-anchor': 'middle' }, place));
  });
  const legend = h('ul', { class: 'legend' }, ...areas.map((area, k) => {
    const swatch = h('span', { class: 'swatch', 'aria-hidden': 'true' });
    swatch.style.background = css(kCategories[k % kCategories.length]);
    return h('li', {}, swatch, `${area.name} (at most ${bytes(Math.max(...area.values))})`);
  }));
  const out = h('figure', { class: 'areas' }, root as unknown as HTMLElement, legend);
  const tip = new Tip(out);
  out.append(tip.element);
  root.addEventListener('pointermove', (event) => {
    const box = root.getBoundingClientRect();
    const at = Math.floor((((event.clientX - box.left) / box.width) * kWidth - kLeft) / wide);
    if (at < 0 || at >= places.length) tip.hide();
    else tip.show([`${places[at]}: ${bytes(totals[at])}`, ...areas.filter((area) => area.values[at] > 0).map((area) => `${area.name} ${bytes(area.values[at])}`)], event.clientX, event.clientY);
  });
  root.addEventListener('pointerleave', () => tip.hide());
  return out;
}
