// Who holds what at a moment: the blocks in use, summed by a key, and as a tree of frames.
import type { Input } from '../document/types';
import { bytes as bytesText } from '../view/format';
import type { BlockTable } from './blocks';
import type { LiveSet } from './live_set';
import type { RunData } from './run_data';

export interface Holder {
  label: string;
  bytes: number;
  blocks: number;
}

export type GroupBy = 'name' | 'line' | 'annotation' | 'size' | 'phase' | 'pool' | 'stream';
export const kGroups: GroupBy[] = ['name', 'line', 'annotation', 'size', 'phase', 'pool', 'stream'];

// The groups that a run's blocks can be told apart by.
export const groupsOf = (data: RunData, input: Input): GroupBy[] => kGroups.filter((by) =>
  (by !== 'name' || input.holders.length > 0) && (by !== 'annotation' || input.texts.length > 0) && (by !== 'phase' || data.run.phases.length > 0));

// The group of a block, in words.
export function groupLabel(
  blocks: BlockTable, data: RunData, input: Input, by: GroupBy, phase: (block: number) => string | null): (block: number) => string {
  const { projected_from: projected } = data.run;
  const line = (block: number): string => {
    const stack = blocks.stack[block];
    if (stack >= 0) return input.stacks.labels[stack];
    const isProjected = projected !== null && blocks.alloc[block] >= projected;
    return isProjected ? 'projected: as in the step before the failure, no stack' : 'no stack recorded';
  };
  return (block) => {
    switch (by) {
      case 'name': return input.holders[blocks.holder?.[block] ?? -1] ?? 'no name known';
      case 'line': return line(block);
      case 'annotation': return blocks.text === null || blocks.text[block] < 0 ? 'no annotation' : input.texts[blocks.text[block]];
      case 'size': return bytesText(blocks.size[block]);
      case 'phase': return blocks.allocEvent[block] < 0 ? 'before the trace' : (phase(block) ?? 'no phase');
      case 'pool': return data.run.pools[blocks.pool[block]] ?? 'default';
      case 'stream': return `stream ${data.run.streams[blocks.stream[block]] ?? '0'}`;
    }
  };
}

// Live blocks alone (pending ones are nobody's any more), most bytes first, then by label.
export function sumHolders(live: LiveSet, blocks: BlockTable, label: (block: number) => string): Holder[] {
  const sums = new Map<string, Holder>();
  for (let i = 0; i < live.count; ++i) {
    const block = live.list[i];
    if (blocks.isPending(block, live.moment)) continue;
    const key = label(block);
    const row = sums.get(key);
    if (row === undefined) sums.set(key, { label: key, bytes: blocks.size[block], blocks: 1 });
    else {
      row.bytes += blocks.size[block];
      row.blocks += 1;
    }
  }
  return [...sums.values()].sort((a, b) => b.bytes - a.bytes || (a.label < b.label ? -1 : 1));
}

// What a block of a line is called where the line holds more than half, as one that calls a trainer does; null: as the line.
export const partLabel = (blocks: BlockTable, input: Input, block: number): string | null => input.stacks.parts[blocks.stack[block]] ?? null;

// Who holds it at the moment of the live set, as the text of `explain` has it: a line that holds more than half is told in parts.
export function sumInParts(live: LiveSet, blocks: BlockTable, input: Input, by: GroupBy, label: (block: number) => string): Holder[] {
  const rows = sumHolders(live, blocks, label);
  const all = rows.reduce((sum, row) => sum + row.bytes, 0);
  if (by !== 'line' || rows.length === 0 || 2 * rows[0].bytes <= all) return rows;
  return sumHolders(live, blocks, (block) => {
    const line = label(block);
    return line === rows[0].label ? (partLabel(blocks, input, block) ?? line) : line;
  });
}

export interface Frame {
  name: string;
  bytes: number;
  blocks: number;
  children: Map<string, Frame>;
}

// Outermost frame first; a stack without frames stands under its label.
// isWhole: with frames of C and C++; else those of Python alone, where a stack has any.
export function frameTree(live: LiveSet, blocks: BlockTable, input: Input, isWhole = false): Frame {
  const root: Frame = { name: 'all live blocks', bytes: 0, blocks: 0, children: new Map() };
  const { stacks } = input;
  const bytesOf = new Float64Array(stacks.labels.length + 1);
  const blocksOf = new Int32Array(stacks.labels.length + 1);
  for (let i = 0; i < live.count; ++i) {
    const block = live.list[i];
    if (blocks.isPending(block, live.moment)) continue;
    const stack = blocks.stack[block] < 0 ? stacks.labels.length : blocks.stack[block];
    bytesOf[stack] += blocks.size[block];
    blocksOf[stack] += 1;
  }
  for (let stack = 0; stack <= stacks.labels.length; ++stack) {
    if (blocksOf[stack] === 0) continue;
    let node = root;
    const add = (frame: Frame): void => {
      frame.bytes += bytesOf[stack];
      frame.blocks += blocksOf[stack];
    };
    add(root);
    const path = stack === stacks.labels.length ? ['no stack recorded'] : pathOf(input, stack, isWhole);
    for (const name of path) {
      let child = node.children.get(name);
      if (child === undefined) node.children.set(name, (child = { name, bytes: 0, blocks: 0, children: new Map() }));
      add(child);
      node = child;
    }
  }
  return root;
}

export function frameText([file, line, name]: [string, number | null, string]): string {
  const short = file.split('/').pop() ?? file;
  return line !== null && line > 0 ? `${short}:${line} ${name}` : name || short;
}

const isPython = (file: string): boolean => file.endsWith('.py');

export function pathOf(input: Input, stack: number, isWhole = true): string[] {
  const { starts, stack_frames: places, labels, frames } = input.stacks;
  let path = places.slice(starts[stack], starts[stack + 1]).reverse().map((place) => frames[place]);
  const python = isWhole ? [] : path.filter(([file]) => isPython(file));
  if (python.length > 0) path = python;
  return path.length === 0 ? [labels[stack]] : path.map(frameText);
}

export const hasOtherFrames = (input: Input): boolean =>
  input.stacks.frames.some(([file]) => !isPython(file)) && input.stacks.frames.some(([file]) => isPython(file));

// The lines that get colours of their own: those that hold most at the moment of the live set, then those with most bytes x time.
export function rankLabels(live: LiveSet, blocks: BlockTable, clock: Float64Array, label: (block: number) => string, most = 11): string[] {
  const overTime = new Map<string, number>();
  for (let block = 0; block < blocks.count; ++block) {
    const name = label(block);
    overTime.set(name, (overTime.get(name) ?? 0) + blocks.bytesTime(block, clock));
  }
  const now = sumHolders(live, blocks, label).map((row) => row.label);
  const long = [...overTime].sort(([, a], [, b]) => b - a).map(([name]) => name);
  return [...new Set([...now.slice(0, Math.ceil(most / 2)), ...long, ...now])].slice(0, most);
}
