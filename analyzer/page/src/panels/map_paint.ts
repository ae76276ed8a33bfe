// Paints the segment map of a moment into pixels: a line of one pixel's height, then repeated to rows. The cost is that of the
// rows in view and the blocks in use.
import type { LiveRun } from '../app';
import { isPrivatePool } from '../app';
import type { MapLayout } from '../model/map_layout';
import { slotOf, type Standing } from '../model/segments';
import { mix, parseColour, pixel, type Theme } from '../view/palette';

export interface MapPaint {
  layout: MapLayout;
  standing: Standing;
  firstRow: number; // rows [firstRow, lastRow) are in view
  lastRow: number;
  rowHeight: number; // pixels, with the gap below
  colour: (block: number) => number;
  isMarked: ((block: number) => boolean) | null; // others fade
  selected: number | null;
  pins: Set<number> | null;
  theme: Theme;
}

// Darkens or fades a pixel towards another colour by a quarter, a half or three quarters.
const blend = (a: number, b: number, quarters: number): number => {
  const part = (shift: number): number =>
    ((((a >>> shift) & 255) * (4 - quarters) + ((b >>> shift) & 255) * quarters) >> 2) << shift;
  return (0xff000000 | part(0) | part(8) | part(16)) >>> 0;
};

export class MapPainter {
  private line = new Uint32Array(0);
  private readonly segmentOf: Int32Array; // of each block; -1: not looked up yet
  private slotBySegment: Int32Array;

  constructor(private readonly run: LiveRun) {
    this.segmentOf = new Int32Array(run.memory.blocks.count).fill(-1);
    this.slotBySegment = new Int32Array(run.memory.segments.count);
  }

  slot(standing: Standing, block: number): number {
    const known = this.segmentOf[block];
    if (known >= 0) return this.slotBySegment[known];
    const slot = slotOf(standing, this.run.memory.blocks.address[block]);
    if (slot >= 0) this.segmentOf[block] = standing.segment[slot];
    return slot;
  }

  // Pixels of rows [firstRow, lastRow), `rowHeight` high each.
  paint(what: MapPaint, image: Uint32Array): void {
    const { layout, standing, theme, firstRow, lastRow } = what;
    const { width } = layout;
    const from = firstRow * width;
    const to = lastRow * width;
    if (this.line.length < to - from) this.line = new Uint32Array(to - from);
    const line = this.line.subarray(0, to - from);
    const paper = pixel(theme.paper);
    line.fill(paper);
    this.slotBySegment.fill(-1);
    for (let slot = 0; slot < standing.segment.length; ++slot) this.slotBySegment[standing.segment[slot]] = slot;
    this.paintFree(what, line, from, to);
    this.paintBlocks(what, line, from, to, paper);
    expand(line, width, lastRow - firstRow, what.rowHeight, paper, image);
  }

  private paintFree(what: MapPaint, line: Uint32Array, from: number, to: number): void {
    const { layout, standing, theme } = what;
    const { live, memory: { segments } } = this.run;
    const isUsed = new Uint8Array(standing.segment.length);
    for (let i = 0; i < live.count; ++i) {
      const slot = this.slot(standing, live.list[i]);
      if (slot >= 0) isUsed[slot] = 1;
    }
    const [free, stranded, ofPool] = [pixel(theme.free), pixel(theme.stranded), pixel(theme.privateFree)];
    for (let slot = 0; slot < standing.segment.length; ++slot) {
      const begin = layout.begin[slot];
      const end = begin + layout.pixels[slot];
      if (end <= from || begin >= to) continue;
      const isPrivate = isPrivatePool(this.run.data, segments.pool[standing.segment[slot]]);
      line.fill(isPrivate ? ofPool : isUsed[slot] ? stranded : free, Math.max(0, begin - from), Math.min(to, end) - from);
    }
  }

  private paintBlocks(what: MapPaint, line: Uint32Array, from: number, to: number, paper: number): void {
    const { layout, standing, colour, isMarked, selected, pins, theme } = what;
    const { live, memory: { blocks } } = this.run;
    const ink = pixel(theme.ink);
    const accent = pixel(mix(parseColour('#ffffff'), theme.failure, 0.8));
    for (let i = 0; i < live.count; ++i) {
      const block = live.list[i];
      const slot = this.slot(standing, block);
      if (slot < 0) continue;
      const at = (blocks.address[block] - standing.address[slot]) * layout.perByte[slot];
      const begin = Math.round(layout.begin[slot] + at) - from;
      let end = Math.round(layout.begin[slot] + at + blocks.size[block] * layout.perByte[slot]) - from;
      if (end <= begin) end = begin + 1;
      if (end <= 0 || begin >= to - from) continue;
      let value = colour(block);
      if (isMarked !== null && !isMarked(block)) value = blend(value, paper, 3);
      const first = Math.max(0, begin);
      const last = Math.min(line.length, end);
      line.fill(value, first, last);
      if (live.moment >= blocks.freed[block]) for (let k = first; k < last; ++k) if (k & 2) line[k] = blend(value, paper, 2);
      if (end - begin >= 3 && end <= line.length) line[end - 1] = blend(value, ink, 1);
      if (pins !== null && pins.has(block)) {
        line[first] = accent;
        line[last - 1] = accent;
        if (last - first > 6) line[first + 1] = line[last - 2] = accent;
      }
      if (block === selected) {
        const edge = Math.min(3, last - first);
        line.fill(ink, first, first + edge);
        line.fill(ink, last - edge, last);
      }
    }
  }
}

// Repeats each row of the line to its height, less a gap of two pixels.
function expand(line: Uint32Array, width: number, rows: number, rowHeight: number, paper: number, image: Uint32Array): void {
  const gap = rowHeight > 6 ? 2 : 1;
  for (let row = 0; row < rows; ++row) {
    const source = line.subarray(row * width, (row + 1) * width);
    const base = row * rowHeight * width;
    for (let y = 0; y < rowHeight - gap; ++y) image.set(source, base + y * width);
    image.fill(paper, base + (rowHeight - gap) * width, base + rowHeight * width);
  }
}
