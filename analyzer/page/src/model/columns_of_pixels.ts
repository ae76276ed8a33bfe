// Which moments fall into each pixel column of a curve, and the least and greatest value there.
import type { Numbers } from '../document/columns';
import type { Series } from './series';

// Of column c: moments [bounds[c], bounds[c + 1]); the value that it begins with is that of moment bounds[c] - 1.
export function columnBounds(places: Numbers, from: number, to: number, columns: number, out: Int32Array): void {
  let low = 0;
  for (let c = 0; c <= columns; ++c) {
    const edge = from + ((to - from) * c) / columns;
    // The first moment at or after the edge: the steps from one column to the next are about equal, so gallop.
    let step = 1;
    while (low + step < places.length && places[low + step] < edge) step *= 2;
    low = places[low] >= edge ? low : firstFrom(places, edge, low, Math.min(places.length, low + step + 1));
    out[c] = low;
    if (low >= places.length) {
      out.fill(places.length, c, columns + 1);
      return;
    }
  }
}

function firstFrom(places: Numbers, edge: number, begin: number, end: number): number {
  let low = begin;
  let high = end;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (places[middle] < edge) low = middle + 1;
    else high = middle;
  }
  return low;
}

// low and high of each column; NaN where the curve has not begun yet or has ended before it.
export function columnRanges(
  series: Series, bounds: Int32Array, columns: number, end: number, low: Float64Array, high: Float64Array): void {
  for (let c = 0; c < columns; ++c) {
    const begin = bounds[c] > 0 ? bounds[c] - 1 : bounds[c];
    const stop = Math.min(end, bounds[c + 1]);
    if (stop <= begin || begin >= end || (stop === begin + 1 && bounds[c] >= end)) {
      low[c] = high[c] = NaN;
      continue;
    }
    series.range(begin, stop);
    low[c] = series.low;
    high[c] = series.high;
  }
}

