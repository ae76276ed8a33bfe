// What is told of a block, in words.
import type { App, LiveRun } from '../app';
import { address, bytes, count, duration } from '../view/format';

export interface BlockLine {
  size: string;
  state: string;
  label: string;
  request: string;
  age: string;
  address: string;
}

export function labelOf(app: App, run: LiveRun, block: number): string {
  const input = app.doc.inputs[run.data.run.input];
  const { stack: stacks, alloc } = run.memory.blocks;
  const stack = stacks[block];
  const { projected_from: projected } = run.data.run;
  if (stack < 0 && projected !== null && alloc[block] >= projected) return 'projected: as in the step before the failure, no stack';
  return stack < 0 ? 'no stack recorded' : input.stacks.labels[stack];
}

export function blockLine(app: App, run: LiveRun, block: number): BlockLine {
  const { blocks } = run.memory;
  const { moment } = run.live;
  const request = blocks.request(block);
  const born = blocks.allocEvent[block];
  let age = 'alive since before the trace';
  if (born >= 0) {
    age = `${count(Math.max(0, run.data.event[moment] - born))} events old, since event ${count(born)}`;
    const { time } = run.data;
    if (time !== null) age += ` (${duration(Math.max(0, time[moment] - time[blocks.alloc[block]]))})`;
  }
  return {
    size: bytes(blocks.size[block]),
    state: moment >= blocks.freed[block] ? 'pending' : 'live',
    label: labelOf(app, run, block),
    request: request === null ? 'request not in this trace' : `${bytes(request)} requested`,
    age,
    address: address(blocks.address[block]),
  };
}
