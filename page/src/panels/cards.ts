// What a program takes without a GPU, and which card is enough.
import type { AccountPart, Card, DryRun, Outcome } from '../document/answers/dry-run';
import { bytes } from '../view/format';
import { bar, h, panel, type Child } from '../view/dom';
import { toDoBox } from './verdict';

export function outcome(row: Outcome | null): string {
  if (row === null) return 'not possible';
  if (row.fits) return row.headroom_bytes === null ? 'fits' : `fits, ${bytes(row.headroom_bytes)} to spare`;
  return row.failed_at === null ? 'does not fit' : `fails: ${row.failed_at}`;
}

// No verdict: what the card that ran would do with as much memory.
export function unrun(card: Card): string {
  const { headroom_bytes: spare, failed_at: at } = card.default;
  return `as ${card.ran_as} would run it: ${spare !== null ? `${bytes(spare)} to spare` : at === null ? 'fails' : `fails: ${at}`}`;
}

const fits = (row: Outcome | null): boolean => row?.fits === true;

export function firstEnough(cards: Card[]): { card: Card; how: string } | null {
  for (const card of cards) {
    if (card.has_kernels === false) continue;
    if (fits(card.default)) return { card, how: 'default settings' };
    if (fits(card.expandable)) return { card, how: 'expandable_segments:True' };
    if (card.best_found !== null && card.best_found.fits) return { card, how: card.best_found.conf || 'default settings' };
  }
  return null;
}

function mark(row: Outcome | null, label: string): Child {
  return h('td', { 'data-label': label, class: fits(row) ? 'fits' : 'fails' }, h('span', { 'aria-hidden': 'true' }, fits(row) ? '✓ ' : '✗ '), outcome(row));
}

const outcomes = (card: Card): Child[] => card.has_verdict
  ? [mark(card.default, 'default'), mark(card.expandable, 'expandable'), mark(card.best_found, 'best found')]
  : [h('td', { 'data-label': 'no verdict', colspan: 3 }, unrun(card))];

export function howItWent(dryRun: DryRun): string {
  const unless = dryRun.fits_unless ?? null;
  const room = unless === null ? '' : `, and it fits unless ${unless.who} ${unless.who === 'libraries' ? 'take' : 'takes'} more than ${bytes(unless.bytes)}`;
  const failed = dryRun.fits === null ? '' : dryRun.fits ? `; no request failed${room}` : '; a request failed';
  if (dryRun.ended_early === null) return failed;
  const [what] = dryRun.ended_early.what.split('. '); // the message of an error may go on
  return `${failed}; the program ended before its end, with ${what}: this is what was seen until then`;
}

// As the text of `dry-run` has it.
const kToTheEnd = 'mend what ended the program, and run it to its end: then it is known what it needs';

export function accountLine(part: AccountPart): string {
  const { least_bytes: least, most_bytes: most } = part;
  const size = least === most ? bytes(most) : `${bytes(least)} to ${bytes(most)}`;
  return `${part.name}: ${size}${part.in_peak ? '' : ' on top'} (${part.mark}: ${part.source})`;
}

function accountOf(dryRun: DryRun): HTMLElement | null {
  const account = dryRun.account ?? null;
  return account === null ? null : h('details', {}, h('summary', {}, `Whose the memory of device ${account.device} is`),
    h('ul', {}, ...account.parts.map((part) => h('li', {}, accountLine(part)))));
}

export function dryRunPanel(dryRun: DryRun): HTMLElement {
  const { cards } = dryRun;
  const enough = cards === null ? null : firstEnough(cards.rows);
  return panel(cards === null ? 'What the program takes' : 'Which card is enough', { id: 'cards' },
    h('p', {}, h('code', {}, dryRun.program.join(' ')), `: ${bytes(dryRun.peak_bytes)} of a device at most, contexts included`,
      howItWent(dryRun)),
    dryRun.ended_early === null ? null : toDoBox('TRY FIRST', [{ what: kToTheEnd, lines: [], why: null }]),
    cards === null ? null : h('p', {}, enough === null ? 'No card that it was run as is enough.' : h('strong', {}, `${enough.card.card} is enough${dryRun.ended_early === null ? '' : ' for what was seen'}, with ${enough.how}.`)),
    cards === null ? null : h('div', { class: 'table-scroll', tabindex: 0, role: 'region', 'aria-label': 'Cards' }, h('table', { class: 'stacks-up' },
      h('thead', {}, h('tr', {}, ...['Card', 'Memory', 'Live at most', 'Default', 'Expandable segments', 'Best settings found'].map((name, i) =>
        h('th', { scope: 'col', class: i === 1 ? 'number' : null }, name)))),
      h('tbody', {}, ...cards.rows.map((card) => h('tr', { class: card === enough?.card ? 'advised' : null },
        h('th', { scope: 'row', class: 'first' }, card.has_kernels === false ? `${card.card} (this PyTorch has no kernels for it)` : card.card), h('td', { class: 'number', 'data-label': 'memory' }, bytes(card.total_bytes)),
        h('td', {}, bar(card.peak_allocated_bytes / card.allocator_bytes, 'live')), ...outcomes(card)))))),
    cards === null || cards.rows.every((card) => card.has_verdict) ? null
      : h('p', {}, '“would run it” is no verdict: a card of another compute capability may take other kernels, and other memory.'),
    accountOf(dryRun),
    h('details', {}, h('summary', {}, 'What was assumed'), h('ul', {}, ...dryRun.assumptions.map((row) =>
      h('li', {}, `${row.what}${row.bytes === null ? '' : `: ${bytes(row.bytes)}`} (${row.mark}: ${row.source})`)))));
}
