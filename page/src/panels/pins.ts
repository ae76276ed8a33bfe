// What pins the segments at the moment: stranded bytes, charged to the blocks that bound the holes.
import { isPrivatePool, type App, type LiveRun } from '../app';
import { findHoles } from '../model/holes';
import { leftOutText } from '../model/left_out';
import { address, bytes, count } from '../view/format';
import { h, panel } from '../view/dom';
import { labelOf } from './block_text';
import { Table } from './table';

export interface PinRow {
  label: string;
  blame: number;
  size: number;
  blocks: number;
  oldest: number; // event; -1: before the trace
}

// By line of code, by block where the trace has no stacks; as `ashlar explain` has them. Most blame first.
export function sumPins(app: App, run: LiveRun): PinRow[] {
  const { live, memory, data } = run;
  const { blocks } = memory;
  const holes = findHoles(live, blocks, memory.segments, memory.segments.at(live.moment), (pool) => isPrivatePool(data, pool));
  const rows = new Map<string, PinRow>();
  for (let i = 0; i < holes.order.length; ++i) {
    if (holes.blame[i] === 0) continue;
    const block = holes.order[i];
    const label = pinLabel(app, run, block);
    let row = rows.get(label);
    if (row === undefined) rows.set(label, (row = { label, blame: 0, size: 0, blocks: 0, oldest: Infinity }));
    row.blame += holes.blame[i];
    row.size += blocks.size[block];
    row.blocks += 1;
    row.oldest = Math.min(row.oldest, blocks.allocEvent[block]);
  }
  return [...rows.values()].sort((a, b) => b.blame - a.blame || (a.label < b.label ? -1 : 1));
}

// What keeps the holes of the live set's moment, as `ashlar explain` counts it; empty where nothing is stranded.
export function strandedText({ live, memory, data }: LiveRun): string {
  const holes = findHoles(live, memory.blocks, memory.segments, memory.segments.at(live.moment), (pool) => isPrivatePool(data, pool));
  return holes.stranded === 0 ? '' : `in ${count(holes.holed)} segments, behind ${count(holes.pins)} blocks in use`;
}

// The line that allocated a block; without any stacks in the trace its address.
export function pinLabel(app: App, run: LiveRun, block: number): string {
  const hasStacks = app.doc.inputs[run.data.run.input].stacks.labels.length > 0;
  return hasStacks ? labelOf(app, run, block) : `at ${address(run.memory.blocks.address[block])}`;
}

export class Pins {
  readonly element: HTMLElement;
  private readonly table: Table<PinRow>;
  private readonly sum = h('p', { class: 'faint' });

  constructor(private readonly app: App, private readonly run: LiveRun) {
    this.table = new Table<PinRow>('What pins the segments', [
      { name: 'Stranded', text: (row) => bytes(row.blame), value: (row) => row.blame },
      { name: 'Blocks', text: (row) => count(row.blocks), value: (row) => row.blocks },
      { name: 'Of', text: (row) => bytes(row.size), value: (row) => row.size },
      { name: 'Alive since', text: (row) => (row.oldest < 0 ? 'before the trace' : `event ${count(row.oldest)}`), value: (row) => row.oldest,
        cell: (row) => (row.oldest < 0 ? 'before the trace' : `event ${count(row.oldest)}`) },
      { name: 'Pinned by', text: (row) => row.label },
    ], {
      onRow: (row) => this.app.store.set(
        { pin: this.app.view.pin === row.label ? null : row.label, stack: null, cause: null, pins: true }, 'jump'),
      isChosen: (row) => row.label === this.app.view.pin,
    });
    this.element = panel('What pins the segments', { id: 'pins' }, this.sum, this.table.element);
  }

  draw(): void {
    this.run.live.moveTo(this.app.moment);
    const rows = sumPins(this.app, this.run);
    const total = rows.reduce((sum, row) => sum + row.blame, 0);
    this.sum.textContent = total === 0 ? 'No memory is stranded at this moment.'
      : `${bytes(total)} stranded ${strandedText(this.run)}: each hole is charged to the blocks that bound it, to the smaller one more. ${leftOutText(this.run.data.run)}`;
    this.table.set(rows);
  }
}
