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

export type GroupBy = 'line' | 'annotation' | 'size' | 'phase' | 'pool' | 'stream';
export const kGroups: GroupBy[] = ['line', 'annotation', 'size', 'phase', 'pool', 'stream'];

// Live blocks alone (pending ones are nobody's any more), most bytes first, then by label.
export function sumHolders(
  live: LiveSet, blocks: BlockTable, data: RunData, input: Input, by: GroupBy, phase: (block: number) => string | null): Holder[] {
  const label = (block: number): string => {
    switch (by) {
      case 'line': return blocks.stack[block] < 0 ? 'no stack recorded' : input.stacks.labels[blocks.stack[block]];
      case 'annotation': return blocks.text === null || blocks.text[block] < 0 ? 'no annotation' : input.texts[blocks.text[block]];
      case 'size': return bytesText(blocks.size[block]);
      case 'phase': return blocks.allocEvent[block] < 0 ? 'before the trace' : (phase(block) ?? 'no phase');
      case 'pool': return data.run.pools[blocks.pool[block]] ?? 'default';
      case 'stream': return `stream ${data.run.streams[blocks.stream[block]] ?? '0'}`;
    }
  };
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

// The lines that hold most at a moment: these get colours of their own.
export function rankLabels(holders: Holder[], most = 11): string[] {
  return holders.slice(0, most).map((row) => row.label);
}
