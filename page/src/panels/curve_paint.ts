// Paints what lies around and over the curves: steps, phases, what is projected, capacity, failed requests.
import type { Axis, RunData } from '../model/run_data';
import { css, kCategories, mix, type Rgb, type Theme } from '../view/palette';

export interface Frame {
  ctx: CanvasRenderingContext2D;
  left: number; // of the plot, canvas pixels
  top: number;
  width: number;
  height: number;
  from: number; // of the axis
  to: number;
  most: number; // bytes at the top
  ratio: number; // canvas pixels a CSS pixel
  axis: Axis;
  theme: Theme;
  taken: Box[]; // by words: no two of them overlap
}

export interface Box {
  left: number;
  top: number;
  width: number;
  height: number;
}

const y = (frame: Frame, bytes: number): number => frame.top + frame.height * (1 - bytes / frame.most);
const x = (frame: Frame, place: number): number =>
  frame.left + ((place - frame.from) / (frame.to - frame.from)) * frame.width;

const overlap = (a: Box, b: Box): boolean =>
  a.left < b.left + b.width && b.left < a.left + a.width && a.top < b.top + b.height && b.top < a.top + a.height;

// The place next to the wanted one, up or down between two heights, where a box overlaps none; null: there is none.
export function freePlace(taken: Box[], wanted: Box, top: number, bottom: number): Box | null {
  const step = Math.max(1, wanted.height / 2);
  for (let by = 0; by < bottom - top; by += step)
    for (const at of by === 0 ? [wanted.top] : [wanted.top + by, wanted.top - by]) {
      const box = { ...wanted, top: at };
      if (at >= top && at + box.height <= bottom && !taken.some((other) => overlap(other, box))) return box;
    }
  return null;
}

// A text on a ground of its own, so that curves below it do not strike it through; not where other words leave no room.
function label(frame: Frame, text: string, at: number, middle: number, colour: Rgb, weight = 400): void {
  const { ctx, ratio, theme } = frame;
  ctx.font = `${weight} ${11 * ratio}px system-ui, sans-serif`;
  const width = ctx.measureText(text).width;
  const left = ctx.textAlign === 'right' ? at - width : at;
  const wanted = { left: left - 3 * ratio, top: middle - 8 * ratio, width: width + 6 * ratio, height: 16 * ratio };
  const box = freePlace(frame.taken, wanted, frame.top, frame.top + frame.height);
  if (box === null) return;
  frame.taken.push(box);
  ctx.fillStyle = `rgb(${theme.paper.join(' ')} / 0.8)`;
  ctx.fillRect(box.left, box.top, box.width, box.height);
  ctx.fillStyle = css(colour);
  ctx.textBaseline = 'middle';
  ctx.fillText(text, at, box.top + 8 * ratio);
}

// Steps as faint bands, phases as a strip above the plot.
export function paintMarks(frame: Frame, data: RunData, phaseColour: ((name: string) => Rgb) | null): void {
  const { ctx, theme, ratio } = frame;
  const places = data.places(frame.axis);
  const at = (moment: number): number => x(frame, places[Math.min(moment, places.length - 1)]);
  const right = frame.left + frame.width;
  data.run.steps.forEach(([begin, end], i) => {
    const first = Math.max(frame.left, at(begin));
    const last = Math.min(right, at(end));
    if (last <= first) return;
    if (i % 2 === 0) {
      ctx.fillStyle = css(mix(theme.paper, theme.ink, 0.035));
      ctx.fillRect(first, frame.top, last - first, frame.height);
    }
  });
  if (phaseColour === null) return;
  let drawn = frame.left;
  for (const phase of data.run.phases) {
    const first = Math.max(frame.left, at(phase.begin));
    const last = Math.min(right, at(phase.end));
    if (last <= first || (last <= drawn && last - first < ratio)) continue;
    ctx.fillStyle = css(phaseColour(phase.name));
    ctx.fillRect(first, frame.top - 8 * ratio, Math.max(ratio, last - first), 6 * ratio);
    drawn = last;
  }
}

// Of how many steps one has its number: all of them, or every second, fifth, tenth, ... where they are narrower than a number.
export function stepStride(width: number, number: number): number {
  for (let ten = 1; ; ten *= 10) for (const by of [1, 2, 5]) if (by * ten * width >= number || ten > 1e9) return by * ten;
}

// The numbers of the steps, over the curves.
export function paintStepNumbers(frame: Frame, data: RunData): void {
  const { ctx, theme, ratio } = frame;
  const places = data.places(frame.axis);
  ctx.fillStyle = css(theme.ink);
  ctx.font = `${10 * ratio}px system-ui, sans-serif`;
  ctx.textAlign = 'left';
  ctx.textBaseline = 'bottom';
  ctx.strokeStyle = css(theme.paper); // a curve under them does not strike them through
  ctx.lineWidth = 3 * ratio;
  ctx.lineJoin = 'round';
  const at = (moment: number): number => x(frame, places[Math.min(moment, places.length - 1)]);
  const { steps } = data.run;
  if (steps.length === 0) return;
  const stride = stepStride((at(steps[steps.length - 1][1]) - at(steps[0][0])) / steps.length, ctx.measureText(String(steps.length)).width + 6 * ratio);
  steps.forEach(([begin, end], i) => {
    if ((i + 1) % stride !== 0) return;
    const first = Math.max(frame.left, at(begin));
    const last = Math.min(frame.left + frame.width, at(end));
    if (last <= first) return;
    const text = last - first > 64 * ratio ? `step ${i + 1}` : `${i + 1}`;
    const box = { left: first, top: frame.top + frame.height - 14 * ratio, width: ctx.measureText(text).width + 6 * ratio, height: 12 * ratio };
    const room = stride === 1 ? last : frame.left + frame.width;
    if (box.left + box.width > room || frame.taken.some((other) => overlap(other, box))) return;
    frame.taken.push(box);
    ctx.strokeText(text, first + 3 * ratio, frame.top + frame.height - 2 * ratio);
    ctx.fillText(text, first + 3 * ratio, frame.top + frame.height - 2 * ratio);
  });
}

// What is projected has a hatched ground and a word.
export function paintProjected(frame: Frame, data: RunData): void {
  if (data.run.projected_from === null) return;
  const { ctx, theme, ratio } = frame;
  const places = data.places(frame.axis);
  const first = Math.max(frame.left, x(frame, places[Math.min(data.run.projected_from, places.length - 1)]));
  const right = Math.min(frame.left + frame.width, x(frame, places[places.length - 1]));
  if (right <= first) return;
  ctx.save();
  ctx.beginPath();
  ctx.rect(first, frame.top, right - first, frame.height);
  ctx.clip();
  ctx.strokeStyle = css(mix(theme.paper, theme.ink, 0.22));
  ctx.lineWidth = ratio;
  ctx.beginPath();
  for (let at = first - frame.height; at < right; at += 9 * ratio) {
    ctx.moveTo(at, frame.top + frame.height);
    ctx.lineTo(at + frame.height, frame.top);
  }
  ctx.stroke();
  ctx.restore();
  ctx.textAlign = 'left';
  if (right - first > 60 * ratio) label(frame, 'projected', first + 6 * ratio, frame.top + frame.height / 2, theme.ink, 600);
}

// Where the capacity lies, CSS pixels below the top of the plot. Null: above the plot.
export const capacityTop = (frame: Frame, capacity: number): number | null =>
  (capacity > frame.most ? null : (Math.round(y(frame, capacity)) - frame.top) / frame.ratio);

// The capacity as a dashed line.
export function paintCapacity(frame: Frame, capacity: number): void {
  const { ctx, theme, ratio } = frame;
  if (capacity > frame.most) return;
  ctx.fillStyle = css(theme.ink);
  const at = Math.round(y(frame, capacity));
  for (let i = frame.left; i < frame.left + frame.width; i += 10 * ratio) ctx.fillRect(i, at, 6 * ratio, ratio);
}

// A failed request: how far it would have gone above what was reserved.
export function paintFailure(frame: Frame, place: number, reserved: number, request: number, text: string): void {
  const { ctx, theme, ratio } = frame;
  const at = x(frame, place);
  if (at < frame.left - 1 || at > frame.left + frame.width + 1) return;
  ctx.fillStyle = css(theme.failure);
  const low = y(frame, reserved);
  const high = Math.max(frame.top, y(frame, reserved + request));
  ctx.fillRect(at - 2 * ratio, high, 4 * ratio, Math.max(3 * ratio, low - high));
  ctx.fillRect(at - ratio / 2, frame.top, ratio, frame.height);
  ctx.beginPath();
  ctx.moveTo(at, high - 2 * ratio);
  ctx.lineTo(at - 5 * ratio, high - 9 * ratio);
  ctx.lineTo(at + 5 * ratio, high - 9 * ratio);
  ctx.fill();
  if (text === '') return;
  const isLeft = at > frame.left + frame.width / 2;
  ctx.textAlign = isLeft ? 'right' : 'left';
  label(frame, text, at + (isLeft ? -9 : 9) * ratio, Math.max(frame.top + 40 * ratio, low + 24 * ratio), theme.failure, 600);
}

// Colours of names: in the order in which they are first seen.
export function nameColours(): (name: string) => Rgb {
  const seen = new Map<string, Rgb>();
  return (name) => {
    let colour = seen.get(name);
    if (colour === undefined) seen.set(name, (colour = kCategories[seen.size % kCategories.length]));
    return colour;
  };
}
