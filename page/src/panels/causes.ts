// The causes found, with their evidence; a click goes to a cause's moment and marks its blocks.
import type { App } from '../app';
import type { Cause } from '../document/answers/explain';
import { isForetold } from '../model/inputs';
import { bytes, plural } from '../view/format';
import { h, panel, replace } from '../view/dom';

export class Causes {
  readonly element: HTMLElement;
  private readonly list = h('ol', { class: 'causes' });

  constructor(private readonly app: App) {
    this.element = panel('Why: causes', { id: 'causes' }, this.list);
  }

  draw(): void {
    const { explanation, causes } = this.app.input();
    const found = explanation.causes.filter((cause) => cause.finding === 'found');
    const absent = explanation.causes.filter((cause) => cause.finding === 'absent').length;
    const hidden = explanation.causes.length - found.length - absent;
    replace(this.list, ...found.map((cause, i) => this.item(cause, i < causes.length ? i : null)));
    this.list.hidden = found.length === 0;
    this.element.hidden = found.length === 0 && isForetold(this.app.doc);
    this.element.querySelector('.cause-rest')?.remove();
    this.element.appendChild(h('p', { class: 'faint cause-rest' },
      `${plural(explanation.causes.length, 'cause')} looked for: ${found.length} found, ${absent} absent, ${hidden} that this input cannot show.`));
  }

  private item(cause: Cause, mark: number | null): HTMLElement {
    const isChosen = mark !== null && this.app.view.cause === mark;
    const marks = mark === null ? null : this.app.input().causes[mark];
    const facts = [...cause.evidence, ...cause.counter_evidence.map((text) => `against it: ${text}`)];
    return h('li', { class: isChosen ? 'chosen' : null },
      h('div', { class: 'cause-head' },
        h('span', { class: 'number' }, cause.bytes === null ? '' : bytes(cause.bytes)),
        h('span', { class: `badge ${cause.confidence ?? ''}` }, cause.confidence ?? 'found'),
        h('strong', {}, cause.sentence),
        marks === null || this.app.observedIndex() === null ? null : h('button', {
          type: 'button', 'aria-pressed': String(isChosen),
          onclick: () => (isChosen ? this.app.store.set({ cause: null }, 'jump') : this.app.jump(marks.moment, { cause: mark, stack: null, pin: null })) },
          isChosen ? 'Shown' : 'Show', h('span', { class: 'off-screen' }, `: ${cause.sentence}`))),
      h('ul', {}, ...facts.map((fact) => h('li', {}, ...this.linked(fact))),
        cause.fix === null ? null : h('li', {},
          `fix: ${cause.fix.change}: peak ${bytes(cause.fix.before.peak_reserved_bytes)} → ${bytes(cause.fix.after.peak_reserved_bytes)}, ` +
          `${cause.fix.before.ooms} → ${plural(cause.fix.after.ooms, 'failed request')}, ${cause.fix.before.retries} → ${plural(cause.fix.after.retries, 'retry', 'retries')}`)),
      cause.lines.length === 0 ? null : h('p', { class: 'lines faint' }, cause.lines.slice(0, 6).join(' · ')));
  }

  // An event that a sentence names is a link to its moment.
  private linked(text: string): (Node | string)[] {
    const out: (Node | string)[] = [];
    let at = 0;
    for (const match of text.matchAll(/event ([\d,]+)/g)) {
      const event = Number(match[1].replaceAll(',', ''));
      const known = this.app.input().evidence_moments.find((row) => row.event === event);
      if (known === undefined) continue;
      out.push(text.slice(at, match.index),
        h('button', { type: 'button', class: 'link', onclick: () => this.app.jump(known.moment) }, match[0]));
      at = match.index + match[0].length;
    }
    out.push(text.slice(at));
    return out;
  }
}
