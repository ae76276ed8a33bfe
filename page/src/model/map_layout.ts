// Where segments lie on the map. Both layouts are one long line of pixels cut into rows: a segment is a run of pixels on it,
// so that painting and hit-testing are the same for both.
//
//   scale   | segment |·| segment ····|        all at one scale, one after the other, cut where a row ends
//           |···|·| segment |
//   rows    | segment ················|        each segment in a row of its own, as wide as the map
import type { Standing } from './segments';

export interface MapLayout {
  width: number; // pixels of a row
  rows: number;
  order: Int32Array; // slots, in the order in which they lie
  begin: Float64Array; // pixel on the line, of each slot
  pixels: Float64Array; // length, of each slot
  perByte: Float64Array; // pixels a byte, of each slot
}

const kGap = 3;

export function layOut(
  standing: Standing, kind: 'scale' | 'rows', width: number, mostBytes: number, wantedRows: number,
  order: Int32Array = Int32Array.from(standing.segment.keys())): MapLayout {
  const slots = standing.segment.length;
  const layout: MapLayout = {
    width, rows: 1, order, begin: new Float64Array(slots), pixels: new Float64Array(slots), perByte: new Float64Array(slots) };
  const perByte = Math.max(1, width * wantedRows - slots * (kGap + 1)) / Math.max(1, mostBytes);
  let at = 0;
  for (const slot of order) {
    const pixels = kind === 'rows' ? width : Math.max(2, Math.round(standing.size[slot] * perByte));
    if (kind === 'scale' && width - (at % width) < Math.min(pixels, 6)) at += width - (at % width); // no stub at a row's end
    layout.begin[slot] = at;
    layout.pixels[slot] = pixels;
    layout.perByte[slot] = pixels / standing.size[slot];
    at += kind === 'rows' ? width : pixels + kGap;
  }
  layout.rows = Math.max(1, Math.ceil(at / width));
  return layout;
}

// Slots in the order in which a reader wants them: those with most free bytes beside blocks in use, then the full ones, then the free.
export function holesFirst(standing: Standing, used: Float64Array): Int32Array {
  const rank = (slot: number): number => (used[slot] === 0 ? 2 : used[slot] < standing.size[slot] ? 0 : 1);
  const holes = (slot: number): number => standing.size[slot] - used[slot];
  return Int32Array.from(standing.segment.keys()).sort((a, b) => rank(a) - rank(b) || (rank(a) === 0 ? holes(b) - holes(a) : 0) || a - b);
}

// The slot at a pixel of the line, and the offset in its segment; null between segments.
export function hit(layout: MapLayout, at: number): { slot: number; offset: number } | null {
  let low = 0;
  let high = layout.begin.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (layout.begin[layout.order[middle]] <= at) low = middle + 1;
    else high = middle;
  }
  const slot = layout.order[low - 1] ?? -1;
  if (slot < 0 || at >= layout.begin[slot] + layout.pixels[slot]) return null;
  return { slot, offset: Math.floor((at + 0.5 - layout.begin[slot]) / layout.perByte[slot]) };
}
