// What is told of a block, in words.
import type { App, LiveRun } from '../app';
import { groupLabel } from '../model/holders';
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
  return groupLabel(run.memory.blocks, run.data, app.doc.inputs[run.data.run.input], 'line', () => null)(block);
}

// Who holds it, by name in the program; null: not known.
export function holderOf(app: App, run: LiveRun, block: number): string | null {
  return app.doc.inputs[run.data.run.input].holders[run.memory.blocks.holder?.[block] ?? -1] ?? null;
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
