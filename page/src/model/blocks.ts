// The blocks of a run in columns, in the order in which they were allocated.
import { asFloats, asInts, type Numbers } from '../document/columns';

export class BlockTable {
  readonly address: Float64Array;
  readonly size: Float64Array;
  readonly requested: Float64Array | null;
  readonly alloc: Int32Array; // moment from which on it is live; 0: before the window
  readonly freed: Int32Array; // moment from which on it is pending; the number of moments: never
  readonly done: Int32Array; // moment from which on it is gone
  readonly stack: Int32Array; // -1: none
  readonly text: Int32Array | null;
  readonly holder: Int32Array | null; // -1: none
  readonly stream: Int32Array;
  readonly pool: Int32Array;
  readonly flags: Int32Array;
  readonly allocEvent: Int32Array; // -1: before the window

  constructor(columns: Map<string, Numbers>, private readonly never: number) {
    const get = (name: string): Numbers => {
      const column = columns.get(`block.${name}`);
      if (column === undefined) throw new Error(`the document lacks its column block.${name}: write the page again`);
      return column;
    };
    const has = (name: string): boolean => columns.has(`block.${name}`);
    this.address = asFloats(get('address'));
    this.size = asFloats(get('size'));
    this.requested = has('requested') ? asFloats(get('requested')) : null;
    this.alloc = asInts(get('alloc'));
    this.freed = asInts(get('freed'));
    this.done = asInts(get('done'));
    this.stack = asInts(get('stack'));
    this.text = has('text') ? asInts(get('text')) : null;
    this.holder = has('holder') ? asInts(get('holder')) : null;
    const zeros = (): Int32Array => new Int32Array(this.count);
    this.stream = has('stream') ? asInts(get('stream')) : zeros();
    this.pool = has('pool') ? asInts(get('pool')) : zeros();
    this.flags = has('flags') ? asInts(get('flags')) : zeros();
    this.allocEvent = has('alloc_event') ? asInts(get('alloc_event')) : zeros().fill(-1);
  }

  get count(): number {
    return this.address.length;
  }

  // Bytes times how long it lives, by the time or place of each moment.
  bytesTime(block: number, clock: Float64Array): number {
    const end = clock.length - 1;
    return this.size[block] * Math.max(1, clock[Math.min(this.freed[block], end)] - clock[Math.min(this.alloc[block], end)]);
  }

  isPending(block: number, moment: number): boolean {
    return moment >= this.freed[block];
  }

  isInUse(block: number, moment: number): boolean {
    return this.alloc[block] <= moment && moment < this.done[block];
  }

  isFreedInWindow(block: number): boolean {
    return this.freed[block] < this.never;
  }

  // What the program asked for; null where the trace does not tell.
  request(block: number): number | null {
    return this.requested !== null && (this.flags[block] & 4) !== 0 ? this.requested[block] : null;
  }
}
