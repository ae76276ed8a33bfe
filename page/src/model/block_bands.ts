// The live blocks of a run as bands that lie one over the other, in the order in which they were allocated: those with most
// bytes x time one by one, the others as a sum.
//
//   const bands = new BlockBands(blocks, data.time ?? data.x, leftOutBytes(run, allocated, blocks));
//   bands.show((block) => true);
//   bands.begin(from);
//   bands.forward(moment);                                // as often as wanted, never back
//   for (let b = bands.first; b >= 0; b = bands.next[b]) draw(blocks.size[b]);
//   bands.others                                          // bytes of the blocks that are not drawn one by one, and of those left out
import type { BlockTable } from './blocks';
import { orderBy } from './live_set';

export const kMostBands = 50000;

const enum Kind { hidden, other, own }

// The n-th largest of values that are none below 0. Sorts only those near it.
export function nthLargest(values: Float64Array, n: number): number {
  const kParts = 16; // of a power of two
  const bucketOf = (value: number): number => Math.floor(kParts * Math.log2(value + 1));
  const counts = new Uint32Array(kParts * 1024);
  for (const value of values) ++counts[bucketOf(value)];
  let bucket = counts.length - 1;
  let above = 0;
  while (bucket > 0 && above + counts[bucket] < n) above += counts[bucket--];
  const near = values.filter((value) => bucketOf(value) === bucket).sort();
  return near[Math.max(0, near.length - (n - above))] ?? 0;
}

export class BlockBands {
  readonly next: Int32Array; // of a block that is drawn: the one above it; -1: none
  first = -1;
  moment = -1;
  readonly drawn: number; // blocks that have a band of their own
  readonly shareOfOthers: number; // of all bytes x time
  private readonly previous: Int32Array;
  private readonly isLarge: Uint8Array;
  private readonly kind: Uint8Array;
  private readonly byFreed: Uint32Array;
  private last = -1;
  private small = 0; // bytes of blocks that have no band of their own
  private nextAlloc = 0;
  private nextFreed = 0;

  // clock: the time, or the place, of each moment. leftOut: bytes of each moment that are in no block.
  constructor(
    private readonly blocks: BlockTable, private readonly clock: Float64Array, private readonly leftOut: Float64Array | null = null, most = kMostBands) {
    const { count } = blocks;
    this.next = new Int32Array(count);
    this.previous = new Int32Array(count);
    this.isLarge = new Uint8Array(count).fill(1);
    this.kind = new Uint8Array(count);
    this.byFreed = orderBy(blocks.freed, clock.length);
    const weights = new Float64Array(count);
    for (let i = 0; i < count; ++i) weights[i] = blocks.bytesTime(i, clock);
    if (count > most) {
      const least = nthLargest(weights, most);
      let room = most;
      for (let i = 0; i < count; ++i) if (weights[i] > least) --room;
      for (let i = 0; i < count; ++i) {
        if (weights[i] > least || (weights[i] === least && room-- > 0)) continue;
        this.isLarge[i] = 0;
      }
    }
    this.drawn = Math.min(count, most);
    this.shareOfOthers = this.shareOf((block) => this.isLarge[block] === 0);
  }

  get others(): number {
    return this.small + (this.leftOut?.[this.moment] ?? 0);
  }

  // Of all bytes x time, that of some blocks.
  shareOf(wants: (block: number) => boolean): number {
    let all = 0;
    let some = 0;
    for (let i = 0; i < this.blocks.count; ++i) {
      const weight = this.blocks.bytesTime(i, this.clock);
      all += weight;
      if (wants(i)) some += weight;
    }
    return all > 0 ? some / all : 0;
  }

  // Which blocks there are; the stack is to be begun anew.
  show(isShown: (block: number) => boolean): void {
    for (let i = 0; i < this.kind.length; ++i) this.kind[i] = !isShown(i) ? Kind.hidden : this.isLarge[i] ? Kind.own : Kind.other;
  }

  // At a moment anew.
  begin(moment: number): void {
    const { count, alloc } = this.blocks;
    this.first = this.last = -1;
    this.small = 0;
    this.nextAlloc = this.nextFreed = 0;
    this.moment = moment;
    while (this.nextAlloc < count && alloc[this.nextAlloc] <= moment) this.enter(this.nextAlloc++);
    while (this.nextFreed < count && this.blocks.freed[this.byFreed[this.nextFreed]] <= moment) ++this.nextFreed;
  }

  forward(moment: number): void {
    const { count, alloc, freed } = this.blocks;
    const before = this.moment;
    this.moment = moment;
    for (; this.nextFreed < count && freed[this.byFreed[this.nextFreed]] <= moment; ++this.nextFreed) {
      const block = this.byFreed[this.nextFreed];
      if (alloc[block] <= before) this.leave(block);
    }
    while (this.nextAlloc < count && alloc[this.nextAlloc] <= moment) this.enter(this.nextAlloc++);
  }

  // What lies at a height of the stack at the moment: a block, the others, or nothing.
  at(bytes: number): number | 'others' | null {
    let top = 0;
    for (let block = this.first; block >= 0; block = this.next[block]) if (bytes < (top += this.blocks.size[block])) return block;
    return bytes < top + this.others ? 'others' : null;
  }

  private enter(block: number): void {
    if (this.blocks.freed[block] <= this.moment) return;
    if (this.kind[block] === Kind.other) this.small += this.blocks.size[block];
    if (this.kind[block] !== Kind.own) return;
    this.previous[block] = this.last;
    this.next[block] = -1;
    if (this.last < 0) this.first = block;
    else this.next[this.last] = block;
    this.last = block;
  }

  private leave(block: number): void {
    if (this.kind[block] === Kind.other) this.small -= this.blocks.size[block];
    if (this.kind[block] !== Kind.own) return;
    const below = this.previous[block];
    const above = this.next[block];
    if (below < 0) this.first = above;
    else this.next[below] = above;
    if (above < 0) this.last = below;
    else this.previous[above] = below;
  }
}
