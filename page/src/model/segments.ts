// The segments of a run, and which of them stand at a moment. A segment's range changes only where it is expandable.
import { asFloats, asInts, type Numbers } from '../document/columns';
import { countUpTo, lastUpTo } from './search';

// The segments that stand at a moment, in address order.
export interface Standing {
  from: number; // moments [from, to) have the same ones
  to: number;
  segment: Int32Array;
  address: Float64Array;
  size: Float64Array;
}

export class SegmentTable {
  readonly extentBegin: Int32Array; // of segment s: extents [extentBegin[s], extentBegin[s + 1])
  readonly end: Int32Array;
  readonly stream: Int32Array;
  readonly pool: Int32Array;
  readonly flags: Int32Array;
  readonly extentMoment: Int32Array;
  readonly extentAddress: Float64Array;
  readonly extentSize: Float64Array;
  private readonly changes: Int32Array; // moments at which a segment comes, changes or goes
  private last: Standing | null = null;

  constructor(columns: Map<string, Numbers>) {
    const ints = (name: string): Int32Array => asInts(columns.get(name) ?? new Int32Array(0));
    this.extentBegin = ints('segment.extent');
    this.end = ints('segment.end');
    const or0 = (name: string): Int32Array => (columns.has(name) ? ints(name) : new Int32Array(this.count));
    this.stream = or0('segment.stream');
    this.pool = or0('segment.pool');
    this.flags = or0('segment.flags');
    this.extentMoment = ints('extent.moment');
    this.extentAddress = asFloats(columns.get('extent.address') ?? new Float64Array(0));
    this.extentSize = asFloats(columns.get('extent.size') ?? new Float64Array(0));
    const sorted = new Int32Array(this.end.length + this.extentMoment.length);
    sorted.set(this.end);
    sorted.set(this.extentMoment, this.end.length);
    sorted.sort();
    this.changes = sorted;
  }

  get count(): number {
    return this.end.length;
  }

  isSmall(segment: number): boolean {
    return (this.flags[segment] & 1) !== 0;
  }

  isExpandable(segment: number): boolean {
    return (this.flags[segment] & 2) !== 0;
  }

  at(moment: number): Standing {
    if (this.last !== null && this.last.from <= moment && moment < this.last.to) return this.last;
    const after = countUpTo(this.changes, moment);
    const found: { segment: number; address: number; size: number }[] = [];
    for (let s = 0; s < this.count; ++s) {
      if (moment >= this.end[s] || this.extentMoment[this.extentBegin[s]] > moment) continue;
      const extent = lastUpTo(this.extentMoment, moment, this.extentBegin[s], this.extentBegin[s + 1]);
      if (this.extentSize[extent] > 0) found.push({ segment: s, address: this.extentAddress[extent], size: this.extentSize[extent] });
    }
    found.sort((a, b) => a.address - b.address || a.segment - b.segment);
    this.last = {
      from: after > 0 ? this.changes[after - 1] : 0,
      to: after < this.changes.length ? this.changes[after] : Infinity,
      segment: Int32Array.from(found, (row) => row.segment),
      address: Float64Array.from(found, (row) => row.address),
      size: Float64Array.from(found, (row) => row.size),
    };
    return this.last;
  }
}

// Those that are to be seen.
export function seenOf(standing: Standing, isSeen: (segment: number) => boolean): Standing {
  const slots = [...standing.segment.keys()].filter((slot) => isSeen(standing.segment[slot]));
  if (slots.length === standing.segment.length) return standing;
  return {
    ...standing, segment: Int32Array.from(slots, (slot) => standing.segment[slot]), address: Float64Array.from(slots, (slot) => standing.address[slot]),
    size: Float64Array.from(slots, (slot) => standing.size[slot]) };
}

// The slot of the standing segment that holds an address; -1: none.
export function slotOf(standing: Standing, address: number): number {
  const slot = lastUpTo(standing.address, address);
  return slot >= 0 && address < standing.address[slot] + standing.size[slot] ? slot : -1;
}
