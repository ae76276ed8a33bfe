// What other settings would have done: their curves over the recorded one, and the map of one of them beside it.
import type { App } from '../app';
import type { WhatIf } from '../document/answers/explain';
import { bytes, count, plural, signedBytes } from '../view/format';
import { h, panel, replace } from '../view/dom';
import { css } from '../view/palette';
import { overlayColour } from './curve';

const nameOf = (row: WhatIf): string => row.conf || 'default';

export function outcomeText(row: WhatIf): string {
  const { projected } = row;
  if (row.gets_past === true) {
    if (projected === null) return 'gets past; nothing is known beyond';
    if (projected.ooms === 0) return `gets past; ${count(projected.requests)} requests more fit, peak ${bytes(projected.peak_reserved_bytes)}`;
    if (projected.failed_steps_later > 0)
      return `gets past; fails ${plural(projected.failed_steps_later, 'step')} on: +${bytes(projected.growth_bytes_per_step)} a step`;
    return `gets past; fails ${plural(projected.failed_after, 'request')} on: needs ${bytes(projected.needed_bytes)}`;
  }
  if (row.ooms > 0) return plural(row.ooms, 'OOM');
  return row.feasible === true ? 'fits' : '';
}

export class WhatIfs {
  readonly element: HTMLElement;
  private readonly body = h('tbody');

  constructor(private readonly app: App) {
    this.element = panel('What would have helped', { id: 'what-ifs' },
      h('p', { class: 'faint' }, 'Each row is replayed from an empty allocator; one that gets past serves what failed. A curve lies over the recorded one; one setting shows its own map.'),
      h('div', { class: 'table-scroll', tabindex: 0, role: 'region', 'aria-label': 'Settings' }, h('table', { class: 'settings stacks-up' },
        h('thead', {}, h('tr', {}, ...['Curve', 'Map', 'Setting', 'Peak reserved', 'Driver calls', 'Against recorded', 'Outcome'].map((name, i) =>
          h('th', { scope: 'col', class: i >= 3 && i <= 5 ? 'number' : null }, name)))),
        this.body)));
  }

  draw(): void {
    const input = this.app.input();
    const rows = input.explanation.what_if;
    this.element.hidden = rows.length === 0;
    replace(this.body, ...rows.map((row, i) => this.rowOf(row, i)));
  }

  private rowOf(row: WhatIf, place: number): HTMLElement {
    const { view } = this.app;
    const index = this.app.input().runs.find((run) => this.app.doc.runs[run].kind === 'what_if' && this.app.doc.runs[run].what_if_row === place) ?? null;
    const name = nameOf(row);
    const recorded = this.app.input().explanation.what_if.find((other) => other.is_recorded_setting);
    const isOver = index !== null && view.overlays.includes(index);
    const swatch = h('span', { class: 'swatch line', 'aria-hidden': 'true' });
    swatch.style.background = css(overlayColour(place));
    const over = index === null ? null : h('label', { class: 'check' },
      h('input', {
        type: 'checkbox', checked: isOver, 'aria-label': `Curve of ${name}`,
        onchange: () => this.app.store.set({
          overlays: isOver ? view.overlays.filter((other) => other !== index) : [...view.overlays, index].sort((a, b) => a - b) }, 'jump') }), swatch);
    const map = index === null ? null : h('input', {
      type: 'radio', name: 'what-if-map', checked: view.run === index, 'aria-label': `Map of ${name}`,
      onclick: () => this.app.store.set(view.run === index ? { run: null }
        : { run: index, overlays: isOver ? view.overlays : [...view.overlays, index].sort((a, b) => a - b) }, 'jump') });
    const isAdvised = this.app.input().explanation.paste?.endsWith(row.conf) === true && row.conf !== '';
    return h('tr', { class: isAdvised ? 'advised' : null },
      h('td', { 'data-label': over === null ? null : 'curve' }, over), h('td', { 'data-label': map === null ? null : 'map' }, map), h('th', { scope: 'row', class: 'first' }, name, isAdvised ? h('span', { class: 'badge healthy' }, 'advised') : null),
      h('td', { class: 'number', 'data-label': 'peak reserved' }, bytes(row.peak_reserved_bytes)), h('td', { class: 'number', 'data-label': 'driver calls' }, count(row.driver_calls)),
      h('td', { class: 'number', 'data-label': 'against recorded' }, recorded === undefined || recorded === row ? '' : signedBytes(row.peak_reserved_bytes - recorded.peak_reserved_bytes)),
      h('td', { class: 'second' }, outcomeText(row), row.is_recorded_setting ? h('span', { class: 'faint' }, ' ← as recorded') : null));
  }
}
