// A step function over moments, with levels of detail: least and greatest of 16, 256, 4,096... moments in a row.
//
//   const series = new Series(values);
//   series.range(100, 900); series.low; series.high;    // over the moments [100, 900)
import { asFloats, type Numbers } from '../document/columns';

interface Level {
  low: Float64Array;
  high: Float64Array;
}

const kShift = 4;
const kFan = 1 << kShift;

function levelAbove(low: Float64Array, high: Float64Array): Level {
  const count = Math.ceil(low.length / kFan);
  const level = { low: new Float64Array(count), high: new Float64Array(count) };
  for (let i = 0; i < count; ++i) {
    let least = Infinity;
    let most = -Infinity;
    for (let k = i * kFan, end = Math.min(low.length, k + kFan); k < end; ++k) {
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
    for (let span = kFan; low.length > 1000; span *= kFan) {
      const given = shipped(span);
      const level = given === null ? levelAbove(low, high) : { low: asFloats(given.low), high: asFloats(given.high) };
      this.levels.push(level);
      ({ low, high } = level);
    }
  }

  // Sets low and high to those of the moments [begin, end); at least one. Of each level the ends that the next one does not
  // cover are read.
  range(begin: number, end: number): void {
    this.low = Infinity;
    this.high = -Infinity;
    let a = Math.max(0, begin) | 0;
    let b = Math.min(end, this.values.length) | 0;
    let [low, high] = [this.values, this.values];
    for (let k = 0; ; ++k) {
      if (k === this.levels.length || b - a < 2 * kFan) {
        this.scan(low, high, a, b);
        return;
      }
      const [up, down] = [(a + kFan - 1) >> kShift, b >> kShift];
      this.scan(low, high, a, up << kShift);
      this.scan(low, high, down << kShift, b);
      [a, b] = [up, down];
      ({ low, high } = this.levels[k]);
    }
  }

  private scan(low: Float64Array, high: Float64Array, begin: number, end: number): void {
    let { low: least, high: most } = this;
    for (let i = begin; i < end; ++i) {
      if (low[i] < least) least = low[i];
      if (high[i] > most) most = high[i];
    }
    this.low = least;
    this.high = most;
  }
}
