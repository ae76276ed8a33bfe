// Paints the segment map of a moment into pixels, a pixel high a row. The cost is that of the rows in view and the blocks in use.
import type { LiveRun } from '../app';
import { isPrivatePool } from '../app';
import { cost } from '../model/cost';
import type { MapLayout } from '../model/map_layout';
import { slotOf, type Standing } from '../model/segments';
import { blend, mix, parseColour, pixel, type Theme } from '../view/palette';

export interface MapPaint {
  layout: MapLayout;
  standing: Standing;
  firstRow: number; // rows [firstRow, lastRow) are in view
  lastRow: number;
  colour: (block: number) => number;
  isMarked: ((block: number) => boolean) | null; // others fade
  selected: number | null;
  pins: Set<number> | null;
  theme: Theme;
}

const kWhite = parseColour('#ffffff');

export class MapPainter {
  private readonly segmentOf: Int32Array; // of each block; -1: not looked up yet
  private slotBySegment: Int32Array;
  private isUsed = new Uint8Array(0); // of each slot

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

  // Bytes of the blocks in use in each slot.
  usedOf(standing: Standing): Float64Array {
    const { live, memory: { blocks } } = this.run;
    const used = new Float64Array(standing.segment.length);
    for (let i = 0; i < live.count; ++i) {
      const slot = slotOf(standing, blocks.address[live.list[i]]);
      if (slot >= 0) used[slot] += blocks.size[live.list[i]];
    }
    return used;
  }

  // `line`: the pixels of rows [firstRow, lastRow), one after the other.
  paint(what: MapPaint, line: Uint32Array): void {
    const { layout, standing, theme, firstRow, lastRow } = what;
    const { width } = layout;
    const from = firstRow * width;
    const to = lastRow * width;
    const paper = pixel(theme.paper);
    line.fill(paper);
    this.slotBySegment.fill(-1);
    for (let slot = 0; slot < standing.segment.length; ++slot) this.slotBySegment[standing.segment[slot]] = slot;
    this.paintFree(what, line, from, to);
    this.paintBlocks(what, line, from, to, paper);
  }

  private paintFree(what: MapPaint, line: Uint32Array, from: number, to: number): void {
    const { layout, standing, theme } = what;
    const { live, memory: { segments } } = this.run;
    if (this.isUsed.length < standing.segment.length) this.isUsed = new Uint8Array(2 * standing.segment.length);
    const { isUsed } = this;
    isUsed.fill(0);
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
    const accent = pixel(mix(kWhite, theme.failure, 0.8));
    cost.blocks += live.count;
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
