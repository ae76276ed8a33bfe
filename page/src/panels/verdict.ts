// On top: what happened, where the bytes went, and the line to paste, in the words of `ashlar explain`.
import type { Action, Explanation } from '../document/answers/explain';
import { whereItWent, type PartRow, type WhereItWent } from '../model/accounting';
import { bytes, percent } from '../view/format';
import { bar, copyButton, h, type Child } from '../view/dom';

const kVerdictNames: Record<string, string> = {
  capacity: 'capacity', nearly_full: 'nearly full', fragmentation: 'fragmentation', outside: 'another process or library', limit: 'limit', leak: 'leak',
  host_memory: 'host memory', healthy: 'healthy', unknown: 'not told',
};

const within = (rows: PartRow[]): PartRow[] => rows.filter((row) => row.isBeside !== true);
const sumOf = (rows: PartRow[]): number => within(rows).reduce((sum, row) => sum + row.bytes, 0);

// The parts of a whole; what no row tells of stays empty.
export function stackedBar(rows: PartRow[], whole = sumOf(rows)): HTMLElement {
  const out = h('div', { class: 'stacked', 'aria-hidden': 'true' });
  for (const row of within(rows)) {
    const part = h('span', { class: `part ${row.kind}`, title: `${row.name} ${bytes(row.bytes)}` });
    part.style.flexGrow = String(row.bytes / Math.max(1, whole));
    out.appendChild(part);
  }
  const rest = h('span', {});
  rest.style.flexGrow = String(Math.max(0, 1 - sumOf(rows) / Math.max(1, whole)));
  out.appendChild(rest);
  return out;
}

export function accountingTable(rows: PartRow[], caption: string, whole = sumOf(rows)): HTMLTableElement {
  const share = (row: PartRow): number => row.bytes / Math.max(1, whole);
  return h('table', { class: 'figures' }, h('caption', { class: 'off-screen' }, caption),
    h('tbody', {}, ...rows.map((row) =>
      h('tr', { 'data-part': row.kind },
        h('th', { scope: 'row' }, h('span', { class: `swatch ${row.kind}`, 'aria-hidden': 'true' }), row.name),
        h('td', { class: 'number' }, bytes(row.bytes)),
        h('td', { class: 'number faint' }, row.isBeside === true ? '' : percent(share(row))),
        h('td', { class: 'bar-cell' }, row.isBeside === true ? null : bar(share(row), row.kind)),
        h('td', { class: 'remark' }, row.remark)))));
}

function accounting(explanation: Explanation, { title, whole, rows }: WhereItWent): HTMLElement {
  const { peak, moment } = explanation;
  return h('div', { class: 'verdict-bytes' },
    h('h2', {}, title, moment === null ? null : h('small', {}, ` at ${moment}`)),
    ...(rows.length === 0 ? [h('p', { class: 'faint' }, 'The parts are not in this message.')]
      : [stackedBar(rows, whole), accountingTable(rows, title, whole)]),
    peak.allocated_bytes === null || peak.reserved_bytes === null || peak.utilisation === null ? null
      : h('p', { class: 'faint' },
        `utilisation ${percent(peak.utilisation)}: peak allocated ${bytes(peak.allocated_bytes)} of peak reserved ${bytes(peak.reserved_bytes)}`));
}

export interface ToDo {
  what: string | null;
  lines: string[]; // to paste
  why: string | null;
}

// What to do, the surest first.
export function toDoBox(tag: 'FIX' | 'TRY FIRST', list: ToDo[], gloss = ''): HTMLElement {
  return h('div', { class: 'actions', role: 'group', 'aria-label': 'What to do' },
    h('span', { class: 'tag' }, tag), gloss === '' ? null : h('span', { class: 'faint' }, ` ${gloss}`),
    h('ol', { class: list.length === 1 ? 'single' : null }, ...list.map(({ what, lines, why }) => h('li', {},
      what === null ? null : h('strong', {}, what),
      lines.length === 0 ? null : h('div', { class: 'lines-to-use' },
        h('pre', { tabindex: 0 }, lines.join('\n')),
        copyButton(() => lines.join('\n'), lines.length === 1 ? 'the line' : 'the lines')),
      why === null ? null : h('p', { class: 'gain' }, why)))));
}

// FIX where a replay or the bytes of the cause speak for it.
function actionsBox(actions: Action[]): Child {
  if (actions.length === 0) return null;
  const isProven = actions[0].proof !== 'not proven';
  return toDoBox(isProven ? 'FIX' : 'TRY FIRST', actions.map((action) => ({ what: action.what, lines: action.lines, why: whyOf(action) })),
    isProven ? '' : 'not tried yet');
}

// That nothing speaks for them yet is said once, beside the tag.
function whyOf({ proof, gain }: Action): string | null {
  const known = [proof === 'not proven' ? null : proof, gain].filter((text) => text !== null);
  return known.length === 0 ? null : known.join(': ');
}

// Whether the advice says what the actions say.
function isSaid({ advice, actions, what_if }: Explanation): boolean {
  const what = actions[0]?.what ?? null;
  return what_if.length === 0 && what !== null && (advice ?? '').startsWith(what);
}

// Whether the run would fit the other device that was asked about.
function elsewhereBox({ elsewhere }: Explanation): Child {
  if (elsewhere === null) return null;
  const answer = elsewhere.fits === null ? 'unknown' : elsewhere.fits ? 'healthy' : 'capacity';
  return h('p', { class: 'evidence elsewhere' }, h('span', { class: `badge ${answer}` }, 'would it fit'), ` ${elsewhere.sentence}`);
}

export function verdictPanel(explanation: Explanation, text: string, isForetold = false): HTMLElement {
  const went = whereItWent(explanation);
  const [head, ...rest] = explanation.headline.split(/ {2,}/);
  const [verdict, ...because] = explanation.evidence;
  const isPlain = isForetold && ['healthy', 'unknown'].includes(explanation.verdict); // the answer stands above
  return h('section', { class: 'verdict panel', 'aria-label': isForetold ? 'The run' : 'Verdict' },
    h('div', { class: 'verdict-words' },
      h('p', { class: 'headline' }, isPlain ? null
        : h('span', { class: `badge ${explanation.verdict}` }, kVerdictNames[explanation.verdict] ?? explanation.verdict),
        h('strong', {}, head), rest.length > 0 ? ` ${rest.join(' ')}` : null),
      verdict === undefined ? null : h('p', { class: 'evidence first' }, verdict),
      actionsBox(explanation.actions),
      elsewhereBox(explanation),
      ...[...because, isSaid(explanation) ? '' : explanation.advice ?? ''].filter((text) => text !== '').map((sentence) => h('p', { class: 'evidence' }, sentence)),
      explanation.next_step === null || isForetold ? null
        : h('details', {}, h('summary', {}, `Next: ${explanation.next_step}`), h('pre', { tabindex: 0 }, explanation.next_lines.join('\n'))),
      text === '' ? null
        : h('details', { class: 'whole-answer' }, h('summary', {}, 'The whole answer as text'),
          h('div', { class: 'row' }, copyButton(() => text, 'the whole answer')), h('pre', { tabindex: 0 }, text))),
    went === null ? null : accounting(explanation, went));
}
