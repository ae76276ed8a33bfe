// Searches in sorted columns.
import type { Numbers } from '../document/columns';

// The number of leading values that are <= value: the place after the last of them.
export function countUpTo(sorted: Numbers | number[], value: number, begin = 0, end = sorted.length): number {
  let low = begin;
  let high = end;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (sorted[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low;
}

// The place of the last value <= value; -1 where none is.
export const lastUpTo = (sorted: Numbers | number[], value: number, begin = 0, end = sorted.length): number => {
  const count = countUpTo(sorted, value, begin, end);
  return count > begin ? count - 1 : -1;
};
