// What to change so that a program fits on a card: each change alone, and the sets that were tried.
import type { Estimate, Fit, Row, Setting } from '../document/answers/fit';
import { bytes } from '../view/format';
import { h, panel, type Child } from '../view/dom';

const nameOf = (row: Row): string => row.changes.length === 0 ? 'as it is' : row.changes.join(', ');

export function fitVerdict(row: Row): string {
  if (row.fits === null) return row.why_not ?? 'not known';
  if (row.fits) return 'fits';
  if (row.is_over_host) return 'fails: the host';
  return row.failed_step === null ? 'fails' : `fails at step ${row.failed_step}`;
}

// Of the peak as it is; a change may take more.
export function saved(fit: Fit, row: Row): string {
  const before = fit.as_it_is.peak_reserved_bytes;
  if (row.changes.length === 0 || before === null || before === 0 || row.peak_reserved_bytes === null) return '';
  return `${Math.round(100 * (before - row.peak_reserved_bytes) / before)} %`;
}

// Floating-point operations of a step, beside those of the program as it is; empty where they were not counted.
export function computes(fit: Fit, row: Row): string {
  const before = fit.as_it_is.work?.operations ?? 0;
  return row.work === null || before === 0 ? '' : `× ${(row.work.operations / before).toFixed(2)}`;
}

function line(fit: Fit, row: Row): HTMLElement {
  const change = row.changes.length === 1 ? fit.changes.find((one) => one.name === row.changes[0]) : undefined;
  const isSet = fit.set !== null && fit.set.changes.join() === row.changes.join();
  return h('tr', { class: isSet ? 'advised' : null },
    h('th', { scope: 'row', class: 'first' }, nameOf(row)),
    h('td', { class: 'number', 'data-label': 'peak reserved' }, row.peak_reserved_bytes === null ? 'not known' : bytes(row.peak_reserved_bytes)),
    h('td', { class: 'number', 'data-label': 'saved' }, saved(fit, row)),
    h('td', { 'data-label': 'verdict', class: row.fits === true ? 'fits' : 'fails' },
      h('span', { 'aria-hidden': 'true' }, row.fits === true ? '✓ ' : '✗ '), fitVerdict(row)),
    h('td', { class: 'number', 'data-label': 'computes' }, computes(fit, row)),
    h('td', { 'data-label': 'line' }, change?.where ?? ''), h('td', { 'data-label': 'costs' }, row.costs));
}

function table(fit: Fit, title: string, rows: Row[]): Child {
  if (rows.length === 0) return null;
  return h('div', { class: 'table-scroll', tabindex: 0, role: 'region', 'aria-label': title }, h('table', { class: 'stacks-up' },
    h('caption', {}, title),
    h('thead', {}, h('tr', {}, ...['Change', 'Peak reserved', 'Saved', 'Verdict', 'Computes', 'Line', 'Costs'].map((name, i) =>
      h('th', { scope: 'col', class: i === 1 || i === 2 || i === 4 ? 'number' : null }, name)))),
    h('tbody', {}, ...rows.map((row) => line(fit, row)))));
}

function written(fit: Fit): Child[] {
  if (fit.set === null) return [];
  const { diff } = fit.set;
  const lines = fit.set.changes.flatMap((name) => {
    if (diff?.changes.includes(name)) return [];
    const change = fit.changes.find((one) => one.name === name);
    return change === undefined ? [] : [`${change.where ?? ''}  ${change.title}`, ...change.lines.map((one) => `    ${one}`)];
  });
  return [lines.length > 0 ? h('pre', {}, lines.join('\n')) : null,
    diff === null ? null : h('pre', { tabindex: 0, role: 'region', 'aria-label': 'diff of the program' }, diff.text)];
}

function settings(rows: Setting[]): Child {
  if (rows.length === 0) return null;
  const title = 'Whole runs replayed on the card under other settings';
  return h('div', { class: 'table-scroll', tabindex: 0, role: 'region', 'aria-label': title }, h('table', { class: 'stacks-up' },
    h('caption', {}, title),
    h('thead', {}, h('tr', {}, ...['Change', 'Best setting', 'Peak reserved', 'Verdict'].map((name, i) =>
      h('th', { scope: 'col', class: i === 2 ? 'number' : null }, name)))),
    h('tbody', {}, ...rows.map((row) => h('tr', {},
      h('th', { scope: 'row', class: 'first' }, row.changes.length === 0 ? 'as it is' : row.changes.join(', ')),
      h('td', { 'data-label': 'best setting' }, h('code', {}, row.setting)),
      h('td', { class: 'number', 'data-label': 'peak reserved' }, row.why_not === null ? bytes(row.peak_reserved_bytes) : 'not known'),
      h('td', { 'data-label': 'verdict' }, row.why_not ?? (row.fits ? 'fits by replay' : 'fails by replay')))))));
}

function estimates(rows: Estimate[]): Child {
  if (rows.length === 0) return null;
  const title = 'No run makes these from outside: what they are about, by the trace of the program as it is';
  return h('div', { class: 'table-scroll', tabindex: 0, role: 'region', 'aria-label': title }, h('table', { class: 'stacks-up' },
    h('caption', {}, title),
    h('thead', {}, h('tr', {}, ...['Change', 'Line', 'Estimated'].map((name, i) =>
      h('th', { scope: 'col', class: i === 2 ? 'number' : null }, name)))),
    h('tbody', {}, ...rows.map((row) => h('tr', {},
      h('th', { scope: 'row', class: 'first' }, row.change, h('pre', {}, row.lines.join('\n'))),
      h('td', { 'data-label': 'line' }, row.where === null ? '' : h('code', {}, row.where)),
      h('td', { class: 'number', 'data-label': 'estimated' }, bytes(row.bytes)))))));
}

export function fitPanel(fit: Fit): HTMLElement {
  const inRows = new Set(fit.rows.map((row) => row.changes.join()));
  return panel('What to change so that it fits', { id: 'fit' },
    h('p', {}, h('code', {}, fit.program.join(' ')), ': ', h('strong', {}, fit.headline)),
    h('ul', {}, ...fit.remarks.map((remark) => h('li', {}, remark))), ...written(fit),
    table(fit, 'Each change alone', [fit.as_it_is, ...fit.rows]),
    table(fit, 'Sets, the cheapest first', fit.sets.filter((row) => !inRows.has(row.changes.join()))), settings(fit.settings),
    estimates(fit.estimates));
}
