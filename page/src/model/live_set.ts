// The blocks in use at a moment. Going to a near moment costs the blocks that came and went between; a far one starts from
// a saved list. The list has no order.
//
//   const live = new LiveSet(blocks, momentCount);
//   live.moveTo(120); for (let i = 0; i < live.count; ++i) use(live.list[i]);
import type { BlockTable } from './blocks';
import { cost } from './cost';

const kApart = 16384; // moments between saved lists

interface Saved {
  moment: number;
  nextAlloc: number;
  nextDone: number;
  list: Uint32Array;
}

// Indices sorted by a column of moments in [0, limit], by counting.
export function orderBy(moments: Int32Array, limit: number): Uint32Array {
  const starts = new Uint32Array(limit + 2);
  for (let i = 0; i < moments.length; ++i) ++starts[moments[i] + 1];
  for (let m = 0; m <= limit; ++m) starts[m + 1] += starts[m];
  const order = new Uint32Array(moments.length);
  for (let i = 0; i < moments.length; ++i) order[starts[moments[i]]++] = i;
  return order;
}

export class LiveSet {
  list: Uint32Array;
  count = 0;
  moment = -1;
  private readonly place: Int32Array; // of each block in the list; -1: not in use
  private readonly byDone: Uint32Array;
  private readonly saved: Saved[] = [];
  private nextAlloc = 0; // blocks before it were allocated by the moment
  private nextDone = 0; // of byDone: those before it are gone

  constructor(private readonly blocks: BlockTable, momentCount: number) {
    this.list = new Uint32Array(1024);
    this.place = new Int32Array(blocks.count).fill(-1);
    this.byDone = orderBy(blocks.done, momentCount);
    for (let moment = 0; moment < momentCount; moment += kApart) {
      this.forward(moment);
      this.saved.push({
        moment, nextAlloc: this.nextAlloc, nextDone: this.nextDone, list: this.list.slice(0, this.count) });
    }
    this.restore(this.saved[0] ?? { moment: 0, nextAlloc: 0, nextDone: 0, list: new Uint32Array(0) });
  }

  has(block: number): boolean {
    return this.place[block] >= 0;
  }

  moveTo(moment: number): void {
    const nearest = this.saved[Math.min(this.saved.length - 1, Math.round(moment / kApart))];
    if (nearest !== undefined && Math.abs(moment - this.moment) > Math.abs(moment - nearest.moment) + kApart / 4)
      this.restore(nearest);
    if (moment >= this.moment) this.forward(moment);
    else this.backward(moment);
  }

  private restore(saved: Saved): void {
    for (let i = 0; i < this.count; ++i) this.place[this.list[i]] = -1;
    this.count = 0;
    for (const block of saved.list) this.add(block);
    ({ moment: this.moment, nextAlloc: this.nextAlloc, nextDone: this.nextDone } = saved);
  }

  private forward(moment: number): void {
    const { alloc, done } = this.blocks;
    while (this.nextAlloc < alloc.length && alloc[this.nextAlloc] <= moment) this.add(this.nextAlloc++);
    while (this.nextDone < done.length && done[this.byDone[this.nextDone]] <= moment)
      this.remove(this.byDone[this.nextDone++]);
    this.moment = moment;
  }

  private backward(moment: number): void {
    const { alloc, done } = this.blocks;
    while (this.nextDone > 0 && done[this.byDone[this.nextDone - 1]] > moment) {
      const block = this.byDone[--this.nextDone];
      if (alloc[block] <= moment) this.add(block);
    }
    while (this.nextAlloc > 0 && alloc[this.nextAlloc - 1] > moment) this.remove(--this.nextAlloc);
    this.moment = moment;
  }

  private add(block: number): void {
    ++cost.blocks;
    if (this.place[block] >= 0) return;
    if (this.count === this.list.length) {
      const longer = new Uint32Array(2 * this.list.length);
      longer.set(this.list);
      this.list = longer;
    }
    this.place[block] = this.count;
    this.list[this.count++] = block;
  }

  private remove(block: number): void {
    ++cost.blocks;
    const place = this.place[block];
    if (place < 0) return;
    const last = this.list[--this.count];
    this.list[place] = last;
    this.place[last] = place;
    this.place[block] = -1;
  }
}
