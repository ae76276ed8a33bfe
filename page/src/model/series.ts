// A step function over moments, with levels of detail: least and greatest of 16, 64, 256... moments in a row.
//
//   const series = new Series(values);
//   series.range(100, 900); series.low; series.high;    // over the moments [100, 900)
import { asFloats, type Numbers } from '../document/columns';
import { cost } from './cost';

interface Level {
  low: Float64Array;
  high: Float64Array;
}

// Level 0 sums up 16 values each, and each further one four of the level below.
const shiftTo = (level: number): number => (level === 0 ? 4 : 2);

// The longest run of a level that is at most so long; 1 where none is.
export function spanUpTo(most: number): number {
  let span = 1;
  for (let next = 16; next <= most; next *= 4) span = next;
  return span;
}

function levelAbove(low: Float64Array, high: Float64Array, shift: number): Level {
  const fan = 1 << shift;
  const count = Math.ceil(low.length / fan);
  const level = { low: new Float64Array(count), high: new Float64Array(count) };
  for (let i = 0; i < count; ++i) {
    let least = Infinity;
    let most = -Infinity;
    for (let k = i * fan, end = Math.min(low.length, k + fan); k < end; ++k) {
      if (low[k] < least) least = low[k];
      if (high[k] > most) most = high[k];
    }
    level.low[i] = least;
    level.high[i] = most;
  }
  return level;
}

export class Series {
  readonly values: Float64Array;
  private readonly levels: Level[] = [];
  low = 0; // of the last range
  high = 0;

  // shipped: levels that the document has, by their span; missing ones are made.
  constructor(values: Numbers, shipped: (span: number) => { low: Numbers; high: Numbers } | null = () => null) {
    this.values = asFloats(values); // of one type all: the loops below are hot
    let low = this.values;
    let high = this.values;
    for (let k = 0, span = 1; low.length > 1000; ++k) {
      span <<= shiftTo(k);
      const given = shipped(span);
      const level = given === null ? levelAbove(low, high, shiftTo(k)) : { low: asFloats(given.low), high: asFloats(given.high) };
      this.levels.push(level);
      ({ low, high } = level);
    }
  }

  // Sets low and high to those of the moments [begin, end); at least one. Of each level the ends that the next one does not
  // cover are read.
  range(begin: number, end: number): void {
    let a = Math.max(0, begin) | 0;
    let b = Math.min(end, this.values.length) | 0;
    let low = this.values;
    let high = this.values;
    let least = Infinity;
    let most = -Infinity;
    let reads = 0;
    for (let k = 0; ; ++k) {
      const shift = shiftTo(k);
      const fan = 1 << shift;
      const isLast = k === this.levels.length || b - a < 2 * fan;
      const up = isLast ? b : ((a + fan - 1) >> shift) << shift;
      const down = isLast ? b : (b >> shift) << shift;
      for (let i = a; i < up; ++i) {
        if (low[i] < least) least = low[i];
        if (high[i] > most) most = high[i];
      }
      for (let i = down; i < b; ++i) {
        if (low[i] < least) least = low[i];
        if (high[i] > most) most = high[i];
      }
      reads += up - a + (b - down);
      if (isLast) break;
      a = up >> shift;
      b = down >> shift;
      low = this.levels[k].low;
      high = this.levels[k].high;
    }
    this.low = least;
    this.high = most;
    cost.samples += reads;
  }
}
