// The parts of a fleet's answer beside its ranks: who differs, stages, causes, growth and settings, as the text has them.
import type { Fleet } from '../document/answers/fleet';
import { bytes, count, plural } from '../view/format';
import { h, type Child } from '../view/dom';

const words = (name: string): string => name.replaceAll('_', ' ');

// "ranks 0-3, 7".
export function ranksOf(fleet: Fleet, members: number[]): string {
  const ranks = members.map((member) => fleet.ranks[member].rank).sort((a, b) => a - b);
  const spans: [number, number][] = [];
  for (const rank of ranks) {
    const last = spans[spans.length - 1];
    if (last !== undefined && rank <= last[1] + 1) last[1] = rank;
    else spans.push([rank, rank]);
  }
  return `${ranks.length === 1 ? 'rank' : 'ranks'} ${spans.map(([from, to]) => (from === to ? String(from) : `${from}${to === from + 1 ? ', ' : '-'}${to}`)).join(', ')}`;
}

export const sentenceOf = (fleet: Fleet, name: string): string => fleet.causes.find((cause) => cause.name === name)?.sentence ?? words(name);

type Cell = Child | { number: string };

function part(title: string, remark: string, heads: string[], rows: Cell[][]): Child {
  if (rows.length === 0) return null;
  const isNumber = heads.map((_, i) => rows.every((row) => typeof row[i] === 'object' && row[i] !== null && 'number' in (row[i] as object)));
  return h('details', { open: true, class: 'fleet-part' }, h('summary', {}, h('strong', {}, title), h('span', { class: 'faint' }, ` ${remark}`)),
    h('div', { class: 'table-scroll', tabindex: 0, role: 'region', 'aria-label': title }, h('table', { class: 'stacks-up' },
      h('thead', {}, h('tr', {}, ...heads.map((head, i) => h('th', { scope: 'col', class: isNumber[i] ? 'number' : null }, head)))),
      h('tbody', {}, ...rows.map((row) => h('tr', {}, ...row.map((cell, i) =>
        h('td', { class: isNumber[i] ? 'number' : null, 'data-label': heads[i].toLowerCase() }, typeof cell === 'object' && cell !== null && 'number' in cell ? cell.number : cell as Child))))))));
}

function triedRows(fleet: Fleet): Cell[][] {
  return (fleet.tried?.rows ?? []).map((row): Cell[] => [
    h('span', {}, row.conf === null ? 'as recorded, each its own' : row.conf || 'default',
      row.is_recommended ? h('span', { class: 'badge healthy' }, 'best') : null, row.is_recorded_setting ? h('span', { class: 'faint' }, ' as recorded') : null),
    row.failing_members > 0 ? h('span', { class: 'fails' }, `fails in ${count(row.failing_members)}`) : '',
    { number: `${row.worst_regret >= 0 ? '+' : ''}${(100 * row.worst_regret).toFixed(1)} %` },
    { number: bytes(Math.max(0, ...row.peak_reserved_bytes)) }, { number: count(row.driver_calls) }]);
}

export function fleetParts(fleet: Fleet, choose: (member: number) => void): Child[] {
  const who = (member: number): HTMLElement => h('button', { type: 'button', class: 'link', onclick: () => choose(member) }, fleet.ranks[member].name);
  const settings = fleet.settings ?? [];
  return [
    part('Failed', 'the first one first', ['Rank', 'After', 'Requested', 'Verdict', 'First cause'], fleet.failures.map(({ member, after_us: after }) => {
      const { failure, causes } = fleet.ranks[member];
      return [who(member), { number: after === null ? '' : `${(after / 1e6).toFixed(3)} s` },
        { number: failure?.request_bytes == null ? '' : bytes(failure.request_bytes) }, words(failure?.verdict ?? ''),
        causes.length === 0 ? '' : `${bytes(causes[0].bytes)}: ${sentenceOf(fleet, causes[0].name)}`];
    })),
    part('Who differs', `from the median of ${fleet.stages.length > 0 ? 'the same stage' : 'all ranks'}`, ['Rank', 'Figure', 'Its own', 'Median', 'Apart'],
      fleet.outliers.map((row) => [who(row.member), words(row.figure), { number: bytes(row.bytes) }, { number: bytes(row.median_bytes) },
        { number: `${row.bytes >= row.median_bytes ? '+' : ''}${((row.bytes / Math.max(1, row.median_bytes) - 1) * 100).toFixed(0)} %` }])),
    part('Stages', 'ranks whose peaks are alike', ['Ranks', 'Peak allocated', 'Peak reserved', 'Which'], fleet.stages.map((stage) => [
      { number: count(stage.members.length) }, { number: bytes(stage.median_peak_allocated_bytes) }, { number: bytes(stage.median_peak_reserved_bytes) },
      ranksOf(fleet, stage.members)])),
    part('Causes', 'in how many ranks; of how many failed ones it is the first', ['Ranks', 'Failed', 'Median', 'At most', 'What'], fleet.causes.map((cause) => [
      { number: count(cause.members.length) }, { number: count(cause.failed.length) }, { number: bytes(cause.median_bytes) }, { number: bytes(cause.most_bytes) },
      h('span', {}, cause.sentence, h('span', { class: 'faint' },
        ` ${ranksOf(fleet, cause.failed.length > 0 ? cause.failed : cause.members)}${cause.line === null ? '' : `, ${cause.line}`}`))])),
    part('Growth', 'what stays behind at each step', ['A step, at most', 'Ranks', 'Line'], fleet.growths.map((row) => [
      { number: bytes(row.most_bytes_per_step) }, ranksOf(fleet, row.members), row.line ?? ''])),
    part('Settings differ', '', ['Ranks', 'Settings', 'Which'], settings.length < 2 ? [] : settings.map((row) => [
      { number: count(row.members.length) },
      `${row.conf || 'default'}, ${row.compat}${row.total_bytes === null ? '' : `, device of ${bytes(row.total_bytes)}`}`, ranksOf(fleet, row.members)])),
    part('One setting for all', `${plural(fleet.tried?.replays ?? 0, 'replay')}; peaks against the lowest of each rank`,
      ['Setting', 'Outcome', 'Worst', 'Highest peak', 'Driver calls'], triedRows(fleet))];
}
