// Which moments fall into each pixel column of a curve, and the least and greatest value there.
import type { Numbers } from '../document/columns';
import { cost } from './cost';
import { spanUpTo, type Series } from './series';

const kFine = 8; // parts of a column that an edge may be off by, where that spares reading

// Of column c: moments [bounds[c], bounds[c + 1]); the value that it begins with is that of moment bounds[c] - 1. Every moment
// of the window is in one column. Where many lie in each, an edge between two stands at the begin of a run that a series has summed
// up, at most an eighth of a column too early.
export function columnBounds(places: Numbers, from: number, to: number, columns: number, out: Int32Array): void {
  let low = 0;
  let width = 1; // moments in the column before: the next one has about as many
  for (let c = 0; c <= columns; ++c) {
    const edge = from + ((to - from) * c) / columns;
    const found = firstFrom(places, edge, low, width);
    width = Math.max(1, found - low);
    low = found;
    out[c] = low;
    if (low >= places.length) {
      out.fill(places.length, c, columns + 1);
      break;
    }
  }
  for (let c = 1, before = out[0]; c < columns; ++c) {
    const span = spanUpTo(Math.min(out[c] - before, out[c + 1] - out[c]) / kFine);
    before = out[c];
    out[c] -= out[c] % span;
  }
}

// The first moment at or after the edge, from low on: about `step` on from there, so look there first and gallop.
function firstFrom(places: Numbers, edge: number, low: number, step: number): number {
  let reads = 2;
  let begin = low; // all before it are before the edge
  let end = Math.min(places.length, low + step); // it is at or after the edge, or the end
  if (begin >= places.length || places[begin] >= edge) {
    end = begin;
  } else {
    for (let on = 1; end < places.length && places[end] < edge; on *= 2, ++reads) {
      begin = end + 1;
      end = Math.min(places.length, end + on);
    }
  }
  // Near the end first: where the columns are alike, it is there.
  for (let back = 1; begin < end && back < end - begin; back *= 4, ++reads) {
    if (places[end - back] < edge) {
      begin = end - back + 1;
      break;
    }
    end -= back;
  }
  while (begin < end) {
    const middle = (begin + end) >>> 1;
    if (places[middle] < edge) begin = middle + 1;
    else end = middle;
    ++reads;
  }
  cost.samples += reads;
  return begin;
}

// low and high of each column; NaN where the curve has not begun yet or has ended before it.
export function columnRanges(
  series: Series, bounds: Int32Array, columns: number, end: number, low: Float64Array, high: Float64Array): void {
  for (let c = 0; c < columns; ++c) {
    const before = Math.min(bounds[c], spanUpTo((bounds[c + 1] - bounds[c]) / kFine)); // what it begins with
    const begin = bounds[c] - before;
    const stop = Math.min(end, bounds[c + 1]);
    if (stop <= begin || begin >= end || (stop === begin + before && bounds[c] >= end)) {
      low[c] = high[c] = NaN;
      continue;
    }
    series.range(begin, stop);
    low[c] = series.low;
    high[c] = series.high;
  }
}

