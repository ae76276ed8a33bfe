// The blocks that a limit left out of a run: their bytes at each moment, and how the page says it.
import type { Run } from '../document/types';
import { count, percent } from '../view/format';
import type { BlockTable } from './blocks';

// What is allocated and in no block of the document; null where none was left out.
export function leftOutBytes(run: Run, allocated: ArrayLike<number>, blocks: BlockTable): Float64Array | null {
  if (run.left_out.blocks === 0) return null;
  const changes = new Float64Array(allocated.length + 1);
  for (let i = 0; i < blocks.count; ++i) {
    changes[blocks.alloc[i]] += blocks.size[i];
    changes[blocks.freed[i]] -= blocks.size[i];
  }
  let drawn = 0;
  return Float64Array.from(allocated, (bytes, moment) => bytes - (drawn += changes[moment]));
}

export const leftOutText = ({ left_out: { blocks, share } }: Run): string => blocks === 0 ? ''
  : `The page leaves out ${count(blocks)} blocks with few bytes × time, ${percent(share)} of all: where they lay looks free on the map.`;
