// Free memory at a moment and the blocks that keep it: a hole belongs to the blocks that bound it, shared inversely to
// their sizes where there are two. The rule, and its rounding, are those of the report's section on pins.
import type { BlockTable } from './blocks';
import type { LiveSet } from './live_set';
import { slotOf, type SegmentTable, type Standing } from './segments';

export interface Holes {
  order: Uint32Array; // blocks in use, in address order
  slot: Int32Array; // slot of the segment of each of them
  blame: Float64Array; // bytes of each of them
  stranded: number; // the sum
  holed: number; // segments that have any of it
  pins: number; // blocks in these
}

export function blocksInOrder(live: LiveSet, blocks: BlockTable): Uint32Array {
  const keys = new Float64Array(live.count);
  const byAddress = new Map<number, number>();
  for (let i = 0; i < live.count; ++i) {
    keys[i] = blocks.address[live.list[i]];
    byAddress.set(keys[i], live.list[i]);
  }
  keys.sort();
  return Uint32Array.from(keys, (key) => byAddress.get(key) ?? 0);
}

// The lower block's share, rounded down; exact above 2^53 as well.
function lowerShare(hole: number, lower: number, upper: number): number {
  if (hole === 0) return 0;
  const both = lower + upper;
  if (both === 0) return Math.floor(hole / 2);
  const product = hole * upper;
  return product < 2 ** 53 ? Math.floor(product / both) : Number((BigInt(hole) * BigInt(upper)) / BigInt(both));
}

// Private pools are left out where pools names them (isPrivate by pool index).
export function findHoles(
  live: LiveSet, blocks: BlockTable, segments: SegmentTable, standing: Standing, isPrivate: (pool: number) => boolean): Holes {
  const order = blocksInOrder(live, blocks);
  const slot = Int32Array.from(order, (block) => slotOf(standing, blocks.address[block]));
  const blame = new Float64Array(order.length);
  let stranded = 0;
  for (let i = 0; i < order.length; ++i) {
    const at = slot[i];
    if (at < 0 || isPrivate(segments.pool[standing.segment[at]])) continue;
    const begin = blocks.address[order[i]];
    const end = begin + blocks.size[order[i]];
    if (i === 0 || slot[i - 1] !== at) blame[i] += begin - standing.address[at];
    if (i + 1 === order.length || slot[i + 1] !== at) {
      blame[i] += standing.address[at] + standing.size[at] - end;
    } else {
      const hole = blocks.address[order[i + 1]] - end;
      const lower = lowerShare(hole, blocks.size[order[i]], blocks.size[order[i + 1]]);
      blame[i] += lower;
      blame[i + 1] += hole - lower;
    }
  }
  let holed = 0;
  let pins = 0;
  for (let begin = 0, end = 0; begin < blame.length; begin = end) { // the blocks of one segment
    let bytes = 0;
    for (; end < blame.length && slot[end] === slot[begin]; ++end) bytes += blame[end];
    stranded += bytes;
    if (bytes > 0) [holed, pins] = [holed + 1, pins + end - begin];
  }
  return { order, slot, blame, stranded, holed, pins };
}
