// What grew between two runs.
import type { Diff, BlockRow } from '../document/answers/diff';
import { bytes, plural, signedBytes } from '../view/format';
import { h, panel, type Child } from '../view/dom';
import { Table } from './table';

const kNames: [string, string][] = [
  ['reserved_bytes', 'reserved'], ['allocated_bytes', 'allocated'], ['live_bytes', 'live tensors'], ['rounding_bytes', 'rounding'],
  ['pending_bytes', 'pending'], ['stranded_bytes', 'stranded'], ['whole_free_bytes', 'whole-free segments'],
  ['private_pool_bytes', "private pools' holes"]];

type Parts = Record<string, number | null>;

function deltaBar(delta: number, most: number): HTMLElement {
  const fill = h('span', { class: `delta-fill ${delta < 0 ? 'less' : 'more'}` });
  fill.style.width = `${(50 * Math.abs(delta)) / Math.max(1, most)}%`;
  return h('span', { class: 'delta', 'aria-hidden': 'true' }, fill);
}

const moreBlocks = (more: number): string => (more === 0 ? 'As many blocks in both.' : `${plural(Math.abs(more), 'block')} ${more > 0 ? 'more' : 'fewer'} in B.`);

function rowsTable(caption: string, rows: BlockRow[], key: string): HTMLElement {
  const at = (parts: Parts): number => parts[key] ?? 0;
  const most = Math.max(1, ...rows.map((row) => Math.abs(at(row.difference))));
  const table = new Table<BlockRow>(caption, [
    { name: 'B less A', text: (row) => signedBytes(at(row.difference)), value: (row) => at(row.difference),
      cell: (row) => h('span', { class: 'share' }, deltaBar(at(row.difference), most), h('span', { class: 'delta-value' }, signedBytes(at(row.difference)))) },
    { name: 'A', text: (row) => bytes(at(row.a)), value: (row) => at(row.a) },
    { name: 'B', text: (row) => bytes(at(row.b)), value: (row) => at(row.b) },
    { name: 'What', text: (row) => row.label,
      cell: (row) => h('span', {}, row.label, row.found_in === 'both' ? null : h('span', { class: 'badge' }, `only ${row.found_in.toUpperCase()}`)) },
  ], { find: () => undefined });
  table.set(rows.filter((row) => at(row.difference) !== 0));
  return table.element;
}

export function diffPanel(diff: Diff): HTMLElement {
  const parts: Child[] = kNames.flatMap(([key, name]) => {
    const [a, b, delta] = [(diff.a.parts as Parts)[key], (diff.b.parts as Parts)[key], (diff.difference as Parts)[key]];
    if (a == null || b == null || delta == null || delta === 0) return [];
    return [h('tr', {}, h('th', { scope: 'row' }, name), h('td', { class: 'number' }, bytes(a)), h('td', { class: 'number' }, bytes(b)),
      h('td', { class: 'number' }, signedBytes(delta)))];
  });
  const groups: [string, BlockRow[] | null, string][] = [
    ['by line', diff.by_stack, 'in_use_bytes'], ['by phase', diff.by_phase, 'in_use_bytes'], ['by size', diff.by_size, 'in_use_bytes'],
    ['by segment', diff.by_segment, 'reserved_bytes']];
  return panel('What grew', { id: 'diff' },
    h('p', { class: 'faint' }, `A: ${diff.a.input} at ${diff.a.moment}. B: ${diff.b.input} at ${diff.b.moment}. ${moreBlocks(diff.difference.blocks ?? 0)}`),
    parts.length === 0 ? h('p', {}, 'No part differs.') : h('div', { class: 'table-scroll', tabindex: 0, role: 'region', 'aria-label': 'A and B' }, h('table', { class: 'figures' }, h('caption', { class: 'off-screen' }, 'A and B'),
      h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, 'Part'), ...['A', 'B', 'B less A'].map((name) => h('th', { scope: 'col', class: 'number' }, name)))),
      h('tbody', {}, ...parts))),
    ...groups.map(([name, rows, key], i) => rows === null || rows.length === 0 ? null
      : h('details', { open: i === 0 }, h('summary', {}, name), rowsTable(`What grew, ${name}`, rows, key))));
}
