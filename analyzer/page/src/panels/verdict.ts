// On top: what happened, where the bytes went, and the line to paste, in the words of `ashlar explain`.
import type { Accounting, Explanation } from '../document/types';
import { bytes, percent } from '../view/format';
import { bar, copyButton, h, type Child } from '../view/dom';

const kVerdictNames: Record<string, string> = {
  capacity: 'capacity', nearly_full: 'nearly full', fragmentation: 'fragmentation', outside: 'outside', limit: 'limit', leak: 'leak',
  healthy: 'healthy', unknown: 'not told',
};

const kParts: [keyof Accounting, string, string, string][] = [
  ['live_bytes', 'live tensors', 'live', ''],
  ['rounding_bytes', 'rounding', 'rounding', 'what blocks span beyond the request'],
  ['pending_bytes', 'pending', 'pending', 'freed, waiting for another stream'],
  ['stranded_bytes', 'stranded', 'stranded', 'free, in segments that hold a block in use'],
  ['whole_free_bytes', 'whole-free segments', 'free', 'cached; the allocator can return them'],
  ['private_pool_bytes', "private pools' holes", 'private', ''],
  ['outside_bytes', 'outside', 'outside', 'CUDA context, other libraries and processes'],
  ['free_bytes', 'free on the device', 'device-free', ''],
];

export interface PartRow {
  name: string;
  kind: string;
  bytes: number;
  remark: string;
}

// The parts that a figure is known of and is not zero; where the request is not known, live is what is allocated.
export function accountingRows(accounting: Accounting): PartRow[] {
  return kParts.flatMap(([key, name, kind, remark]) => {
    const value = accounting[key] ?? (key === 'live_bytes' ? accounting.allocated_bytes : null);
    return value === null || value === 0 ? [] : [{ name, kind, bytes: value, remark }];
  });
}

export function stackedBar(rows: PartRow[]): HTMLElement {
  const total = rows.reduce((sum, row) => sum + row.bytes, 0);
  const out = h('div', { class: 'stacked', 'aria-hidden': 'true' });
  for (const row of rows) {
    const part = h('span', { class: `part ${row.kind}`, title: `${row.name} ${bytes(row.bytes)}` });
    part.style.flexGrow = String(row.bytes / Math.max(1, total));
    out.appendChild(part);
  }
  return out;
}

export function accountingTable(rows: PartRow[], caption: string): HTMLTableElement {
  const total = rows.reduce((sum, row) => sum + row.bytes, 0);
  return h('table', { class: 'figures' }, h('caption', { class: 'off-screen' }, caption),
    h('tbody', {}, ...rows.map((row) =>
      h('tr', {},
        h('th', { scope: 'row' }, h('span', { class: `swatch ${row.kind}`, 'aria-hidden': 'true' }), row.name),
        h('td', { class: 'number' }, bytes(row.bytes)),
        h('td', { class: 'number faint' }, percent(row.bytes / Math.max(1, total))),
        h('td', { class: 'bar-cell' }, bar(row.bytes / Math.max(1, total), row.kind)),
        h('td', { class: 'remark' }, row.remark)))));
}

function paste(explanation: Explanation): Child {
  if (explanation.paste === null)
    return explanation.advice === null ? null : h('p', { class: 'advice' }, explanation.advice);
  const line = explanation.paste;
  return h('div', { class: 'paste' },
    h('span', { class: 'tag' }, 'PASTE'), h('code', { tabindex: 0 }, line), copyButton(() => line, 'the line'),
    explanation.advice === null ? null : h('p', { class: 'advice' }, explanation.advice));
}

export function verdictPanel(explanation: Explanation, text: string): HTMLElement {
  const rows = accountingRows(explanation.accounting);
  const total = explanation.accounting.total_bytes ?? explanation.accounting.reserved_bytes;
  const [head, ...rest] = explanation.headline.split(/ {2,}/);
  const { peak } = explanation;
  const program = explanation.program_remedies[0];
  return h('section', { class: 'verdict panel', 'aria-label': 'Verdict' },
    h('div', { class: 'verdict-words' },
      h('p', { class: 'headline' }, h('span', { class: `badge ${explanation.verdict}` }, kVerdictNames[explanation.verdict] ?? explanation.verdict),
        h('strong', {}, head), rest.length > 0 ? ` ${rest.join(' ')}` : null),
      ...explanation.evidence.map((sentence) => h('p', { class: 'evidence' }, sentence)),
      paste(explanation),
      program === undefined ? null
        : h('details', { class: 'in-program' }, h('summary', {}, `In the program: ${program.sentence}`),
          h('pre', { tabindex: 0 }, program.python.join('\n'))),
      explanation.next_step === null ? null
        : h('details', {}, h('summary', {}, `Next: ${explanation.next_step}`), h('pre', { tabindex: 0 }, explanation.next_lines.join('\n'))),
      text === '' ? null
        : h('details', { class: 'whole-answer' }, h('summary', {}, 'The whole answer as text'),
          h('div', { class: 'row' }, copyButton(() => text, 'the whole answer')), h('pre', { tabindex: 0 }, text))),
    rows.length === 0 ? null : h('div', { class: 'verdict-bytes' },
      h('h2', {}, total === null ? 'Where the bytes went' : `Where ${bytes(total)} went`,
        explanation.moment === null ? null : h('small', {}, ` at ${explanation.moment}`)),
      stackedBar(rows), accountingTable(rows, 'Where the bytes went'),
      peak.allocated_bytes === null || peak.reserved_bytes === null || peak.utilisation === null ? null
        : h('p', { class: 'faint' },
          `utilisation ${percent(peak.utilisation)}: peak allocated ${bytes(peak.allocated_bytes)} of peak reserved ${bytes(peak.reserved_bytes)}`)));
}
