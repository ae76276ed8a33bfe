// The moment in words and figures: read aloud when it comes to rest, and as a table of the accounting.
import type { App, LiveRun } from '../app';
import type { RunData } from '../model/run_data';
import { bytes, count } from '../view/format';
import { h, replace } from '../view/dom';
import type { PartRow } from '../model/accounting';
import { accountingTable, stackedBar } from './verdict';

// Step and phase that a moment lies in, as far as known.
export function placeInProgram(data: RunData, moment: number): string {
  const words: string[] = [];
  const step = data.run.steps.findIndex(([begin, end]) => begin <= moment && moment < end);
  if (step >= 0) words.push(`step ${step + 1}`);
  else {
    const before = data.run.steps.filter(([, end]) => end <= moment).length;
    if (before > 0) words.push(`after step ${before}`);
  }
  const inside = data.run.phases.filter((phase) => phase.begin <= moment && moment < phase.end);
  if (inside.length > 0) words.push(inside[inside.length - 1].name);
  if (data.run.projected_from !== null && moment >= data.run.projected_from) words.push('projected');
  return words.join(', ');
}

export function momentRows(data: RunData, moment: number): PartRow[] {
  const parts = data.parts(moment);
  const rows: PartRow[] = [
    { name: parts.live === null ? 'allocated' : 'live tensors', kind: 'live', bytes: parts.live ?? parts.allocated, remark: '' },
    { name: 'rounding', kind: 'rounding', bytes: parts.rounding ?? 0, remark: '' },
    { name: 'pending frees', kind: 'pending', bytes: parts.pending, remark: 'freed by the program; another stream may still use them' },
    { name: 'stranded', kind: 'stranded', bytes: parts.stranded, remark: '' },
    { name: 'whole-free segments', kind: 'free', bytes: parts.whole_free, remark: '' },
    { name: "private pools' holes", kind: 'private', bytes: parts.private_free, remark: 'free, for CUDA graphs and MemPools alone' },
  ];
  return rows.filter((row) => row.bytes !== 0);
}

export class Moment {
  readonly element = h('section', { class: 'panel moment', 'aria-label': 'The moment' });
  readonly status = h('p', { class: 'off-screen', role: 'status', id: 'moment-status' });

  constructor(private readonly app: App, private readonly data: RunData) {}

  draw(run: LiveRun | null): void {
    const { moment, beyond } = this.app;
    const rows = momentRows(this.data, moment);
    const event = this.data.event[moment];
    const place = placeInProgram(this.data, moment);
    const title = beyond > 0 ? `The recorded run ended at event ${count(event)}` : event < 0 ? 'Before the first event' : `After event ${count(event)}`;
    const reserved = this.data.parts(moment).reserved;
    let counts = '';
    if (run !== null) {
      run.live.moveTo(moment);
      const { blocks: leftOut } = this.data.run.left_out;
      counts = `${count(run.live.count)} blocks ${leftOut === 0 ? 'in use' : 'in use are on this page,'} in ${count(run.memory.segments.at(moment).segment.length)} segments`;
    }
    this.status.textContent = `${title}${place === '' ? '' : `, ${place}`}: ${bytes(reserved)} reserved: ${rows.map((row) => `${row.name} ${bytes(row.bytes)}`).join(', ')}. ${counts}`;
    replace(this.element,
      h('h2', {}, title, place === '' ? null : h('small', {}, ` ${place}`)),
      h('p', { class: 'faint' }, `${bytes(reserved)} reserved${counts === '' ? '' : `; ${counts}`}`),
      stackedBar(rows), accountingTable(rows, 'Reserved memory at the moment'));
  }
}
