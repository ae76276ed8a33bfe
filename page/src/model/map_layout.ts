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
  begin: Float64Array; // pixel on the line, of each slot
  pixels: Float64Array; // length, of each slot
  perByte: Float64Array; // pixels a byte, of each slot
}

const kGap = 3;

export function layOut(standing: Standing, kind: 'scale' | 'rows', width: number, mostBytes: number, wantedRows: number): MapLayout {
  const slots = standing.segment.length;
  const layout: MapLayout = {
    width, rows: 1, begin: new Float64Array(slots), pixels: new Float64Array(slots), perByte: new Float64Array(slots) };
  const perByte = Math.max(1, width * wantedRows - slots * (kGap + 1)) / Math.max(1, mostBytes);
  let at = 0;
  for (let slot = 0; slot < slots; ++slot) {
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

// The slot at a pixel of the line, and the offset in its segment; null between segments.
export function hit(layout: MapLayout, at: number): { slot: number; offset: number } | null {
  let low = 0;
  let high = layout.begin.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (layout.begin[middle] <= at) low = middle + 1;
    else high = middle;
  }
  const slot = low - 1;
  if (slot < 0 || at >= layout.begin[slot] + layout.pixels[slot]) return null;
  return { slot, offset: Math.floor((at + 0.5 - layout.begin[slot]) / layout.perByte[slot]) };
}
