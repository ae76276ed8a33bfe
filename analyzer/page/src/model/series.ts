// A step function over moments, with levels of detail: least and greatest of 16, 256, 4,096... moments in a row.
//
//   const series = new Series(values);
//   series.range(100, 900); series.low; series.high;    // over the moments [100, 900)
import type { Numbers } from '../document/columns';

interface Level {
  span: number; // moments an entry covers
  low: Numbers;
  high: Numbers;
}

const kFan = 16;

function levelAbove(low: Numbers, high: Numbers, span: number): Level {
  const count = Math.ceil(low.length / kFan);
  const level = { span, low: new Float64Array(count), high: new Float64Array(count) };
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
  readonly levels: Level[] = [];
  low = 0; // of the last range
  high = 0;

  // shipped: levels that the document has, by their span; missing ones are made.
  constructor(readonly values: Numbers, shipped: (span: number) => { low: Numbers; high: Numbers } | null = () => null) {
    let low = values;
    let high = values;
    for (let span = kFan; low.length > 1000; span *= kFan) {
      const given = shipped(span);
      const level = given === null ? levelAbove(low, high, span) : { span, ...given };
      this.levels.push(level);
      low = level.low;
      high = level.high;
    }
  }

  // Sets low and high to those of the moments [begin, end); at least one.
  range(begin: number, end: number): void {
    this.low = Infinity;
    this.high = -Infinity;
    let at = Math.max(0, begin);
    const stop = Math.min(end, this.values.length);
    while (at < stop) {
      let k = -1;
      while (k + 1 < this.levels.length && at % this.levels[k + 1].span === 0 && at + this.levels[k + 1].span <= stop) ++k;
      if (k < 0) {
        const value = this.values[at++];
        if (value < this.low) this.low = value;
        if (value > this.high) this.high = value;
      } else {
        const level = this.levels[k];
        const i = at / level.span;
        if (level.low[i] < this.low) this.low = level.low[i];
        if (level.high[i] > this.high) this.high = level.high[i];
        at += level.span;
      }
    }
  }
}
