// The ranks of one job together: what is wrong on which ranks, a heat map of rank by time, and a table of all ranks.
import type { App } from '../app';
import type { Fleet, Rank } from '../document/answers/fleet';
import { bytes, bytesOrUnknown, plural } from '../view/format';
import { copyButton, h, panel, replace, type Child } from '../view/dom';
import { fleetParts, sentenceOf } from './fleet_parts';
import { Heat, type HeatScale } from './heat';
import { Table } from './table';
import { toDoBox } from './verdict';

const baseOf = (path: string): string => path.slice(path.lastIndexOf('/') + 1);
const quoted = (path: string): string => (/^[\w@%+=:,./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`);

// The command that makes a rank's own page.
export const commandOf = (rank: Rank): string => `ashlar report ${quoted(rank.file)} -o rank${rank.rank}.html`;

// The place of a rank's input in the document: its file by the whole base name; -1 where it has none.
export const inputOf = (inputs: { name: string; rank: number | null }[], rank: Rank): number =>
  inputs.findIndex((other) => baseOf(other.name) === baseOf(rank.file) && (other.rank === null || other.rank === rank.rank));

// One setting that serves all; without it the page of the rank that failed first says what to change.
function toDo(fleet: Fleet): Child {
  if (fleet.paste !== null) return toDoBox('FIX', [{ what: null, lines: [fleet.paste], why: fleet.tried?.advice ?? null }]);
  if (fleet.failures.length === 0) return null;
  const rank = fleet.ranks[fleet.failures[0].member];
  return toDoBox('TRY FIRST', [{ what: `see what to change in ${rank.name}, which failed first`, lines: [commandOf(rank)], why: null }]);
}

const figure = (value: number | null): string => (value === null ? '' : bytes(value));

export class FleetPanel {
  readonly element: HTMLElement;
  private readonly heat: Heat;
  private readonly details = h('section', { class: 'rank-details', 'aria-live': 'polite', 'aria-label': 'The chosen rank' });
  private readonly table: Table<Rank>;
  private chosen: number | null = null;

  constructor(private readonly app: App, private readonly fleet: Fleet) {
    this.heat = new Heat(fleet, () => app.theme, (member) => this.choose(member));
    const kind = h('select', { 'aria-label': 'What the heat map shows', onchange: () => {
      this.heat.kind = kind.value === 'allocated' ? 'allocated' : 'reserved';
      this.heat.draw();
    } }, h('option', { value: 'reserved' }, 'reserved'), h('option', { value: 'allocated' }, 'allocated'));
    const scaleText = h('span', { class: 'faint' }, this.heat.scaleText());
    const scale = h('select', { 'aria-label': 'Scale of the heat map', onchange: () => {
      this.heat.scale = scale.value as HeatScale;
      scaleText.textContent = this.heat.scaleText();
      this.heat.draw();
    } }, h('option', { value: 'one' }, 'one scale'), fleet.stages.length > 0 ? h('option', { value: 'stage' }, 'a scale for each stage') : null,
      h('option', { value: 'log' }, 'logarithmic'));
    const cut = h('input', { type: 'checkbox', checked: this.heat.isCut, onchange: () => { this.heat.isCut = cut.checked; this.heat.draw(); } });
    const why = (row: Rank): string => row.error ?? (row.failure !== null ? `out of memory: ${row.failure.verdict}` : '');
    this.table = new Table<Rank>('Ranks', [
      { name: 'Rank', text: (row) => row.name, value: (row) => row.rank, cell: (row) => row.name },
      { name: 'Peak allocated', text: (row) => figure(row.peak_allocated_bytes), value: (row) => row.peak_allocated_bytes ?? -1 },
      { name: 'Peak reserved', text: (row) => figure(row.peak_reserved_bytes), value: (row) => row.peak_reserved_bytes ?? -1 },
      { name: 'Stranded', text: (row) => figure(row.stranded_bytes), value: (row) => row.stranded_bytes ?? -1 },
      { name: 'A step', text: (row) => (row.growth === null ? '' : `+${bytes(row.growth.bytes_per_step)}`), value: (row) => row.growth?.bytes_per_step ?? -1 },
      { name: 'Failure', text: why, cell: (row) => (why(row) === '' ? null : h('span', { class: 'fails' }, why(row))) },
      { name: 'First cause', text: (row) => (row.causes.length === 0 ? '' : sentenceOf(fleet, row.causes[0].name)) },
      { name: 'File', text: (row) => row.file },
    ], { find: () => undefined, most: Infinity, first: 0, onRow: (row) => this.choose(fleet.ranks.indexOf(row)), isChosen: (row) => fleet.ranks.indexOf(row) === this.chosen });
    const [first, ...more] = fleet.answer;
    this.element = panel(`Fleet of ${plural(fleet.ranks.length, 'rank')}`, { id: 'fleet' },
      first === undefined ? null : h('p', { class: 'evidence first' }, first),
      toDo(fleet),
      ...more.map((sentence) => h('p', { class: 'evidence' }, sentence)),
      h('div', { class: 'toolbar' }, h('h3', {}, 'Rank by time'), kind, scale,
        this.heat.firstUse === 0 ? null : h('label', { class: 'check' }, cut, 'from the first use'),
        h('span', { class: 'heat-scale', 'aria-hidden': 'true' }), scaleText,
        fleet.failures.length === 0 ? null : h('span', { class: 'faint' }, h('span', { class: 'heat-failure-key', 'aria-hidden': 'true' }), ' failed')),
      this.heat.element, this.details,
      ...fleetParts(fleet, (member) => this.choose(member)),
      h('h3', {}, 'All ranks'),
      this.table.element,
      fleet.notes.length === 0 ? null : h('ul', { class: 'faint' }, ...fleet.notes.map((note) => h('li', {}, note))));
    this.draw();
    const shown = fleet.failures[0]?.member ?? fleet.outliers[0]?.member;
    if (shown !== undefined) this.choose(shown, false);
  }

  draw(): void {
    this.heat.draw();
    this.table.set(this.fleet.ranks);
  }

  // Shows a rank's figures; where the page holds its trace, that as well.
  private choose(member: number, isAsked = true): void {
    this.chosen = member;
    this.heat.mark(member);
    this.table.set(this.fleet.ranks);
    const rank = this.fleet.ranks[member];
    const row = (name: string, value: string): HTMLElement => h('div', {}, h('dt', {}, name), h('dd', {}, value));
    const outlier = this.fleet.outliers.filter((other) => other.member === member)
      .map((other) => `${other.figure.replaceAll('_', ' ')} ${bytes(other.bytes)}, others ${bytes(other.median_bytes)}`);
    const command = commandOf(rank);
    replace(this.details, h('h3', {}, rank.name, h('small', { class: 'faint' }, ` ${rank.file}`)),
      h('p', {}, rank.error ?? rank.headline ?? ''),
      h('dl', {}, row('Peak', `${bytesOrUnknown(rank.peak_allocated_bytes)} allocated, ${bytesOrUnknown(rank.peak_reserved_bytes)} reserved`),
        row('Stranded', bytesOrUnknown(rank.stranded_bytes)), row('Settings', rank.conf === null ? 'not in this trace' : rank.conf || 'default'),
        ...(outlier.length === 0 ? [] : [row('Apart', outlier.join('; '))]),
        ...(rank.growth === null ? [] : [row('Grows', `${bytes(rank.growth.bytes_per_step)} a step${rank.growth.line === null ? '' : `, ${rank.growth.line}`}`)]),
        ...(rank.causes.length === 0 ? [] : [row('Causes', rank.causes.map((cause) => `${sentenceOf(this.fleet, cause.name)}: ${bytes(cause.bytes)}`).join('; '))])),
      rank.error !== null ? null : h('p', {}, h('span', { class: 'faint' }, 'Its own page: '), h('code', {}, command), copyButton(() => command, `the command for ${rank.name}`)));
    const input = inputOf(this.app.doc.inputs, rank);
    if (!isAsked || input < 0 || input === this.app.view.input) return;
    this.app.showInput(input);
  }
}
