// The answers about the files that were opened: a tab each. What a tab shows is asked for when it is first looked at.
import { copyButton, h, newId, replace } from '../view/dom';
import type { Answer, Settings } from './protocol';
import { saveText, showReport } from './saved';

export type Ask = (what: Answer, settings?: Settings) => Promise<string>;

interface Tab {
  name: string;
  show(panel: HTMLElement): Promise<void>;
}

// A text as the program prints it, to be read, copied and saved.
function printed(text: string, file: string, ...more: (Node | null)[]): Node[] {
  return [
    h('div', { class: 'toolbar' }, copyButton(() => text, 'the text'),
      h('button', { type: 'button', class: 'quiet', onclick: () => saveText(file, text) }, 'Save'), ...more),
    h('pre', { class: 'answer', tabindex: 0, role: 'region', 'aria-label': file }, text),
  ];
}

export class Answers {
  readonly element: HTMLElement;
  private readonly list = h('div', { class: 'tabs', role: 'tablist', 'aria-label': 'Answers' });
  private readonly panels: HTMLElement[] = [];
  private readonly buttons: HTMLButtonElement[] = [];
  private readonly shown = new Set<number>();

  constructor(private readonly ask: Ask, private readonly text: string, names: string[], traces: number) {
    const title = names.length === 1 ? names[0] : `${names[0]} and ${names.length - 1} more`;
    this.element = h('section', { class: 'panel', 'aria-label': 'Answer' }, h('h2', { class: 'given' }, title), this.list);
    for (const tab of this.tabs(names.length, traces)) this.add(tab);
    this.choose(0);
  }

  private tabs(inputs: number, traces: number): Tab[] {
    const asText = (what: Answer, file: string) => async (panel: HTMLElement): Promise<void> =>
      replace(panel, ...printed(await this.ask(what), file));
    return [
      { name: 'Answer', show: async (panel) => replace(panel, ...printed(this.text, 'ashlar.txt')) },
      { name: 'Report page', show: async (panel) => showReport(panel, await this.ask('page')) },
      ...(traces > 0 ? [{ name: 'What if', show: async (panel: HTMLElement) => this.showSweep(panel) }] : []),
      ...(inputs === 2 && traces === 2 ? [{ name: 'What grew', show: asText('diff', 'diff.txt') }] : []),
      { name: 'Markdown', show: asText('markdown', 'ashlar.md') },
      { name: 'JSON', show: asText('json', 'ashlar.json') },
    ];
  }

  // Settings of the allocator, replayed: those of the reader, or those that the program would try.
  private async showSweep(panel: HTMLElement): Promise<void> {
    const out = h('div', {});
    const confs = h('input', { type: 'text', placeholder: 'max_split_size_mb:128; expandable_segments:True', autocomplete: 'off', spellcheck: 'false' });
    const run = async (): Promise<void> => {
      try {
        replace(out, h('p', { class: 'faint' }, 'Replays the settings ...'));
        replace(out, ...printed(await this.ask('sweep', { confs: confs.value.trim() }), 'sweep.txt'));
      } catch (error) {
        replace(out, refusal(error));
      }
    };
    replace(panel,
      h('p', {}, 'The same requests, replayed by the allocator’s own code under other settings.'),
      h('form', { onsubmit: (event: Event) => { event.preventDefault(); void run(); } },
        h('div', { class: 'settings-form' }, h('label', {}, 'Settings to try, with “;” between; empty: those that may help', confs)),
        h('button', { type: 'submit' }, 'Try them')), out);
  }

  private add(tab: Tab): void {
    const at = this.buttons.length;
    const [id, panelId] = [newId('tab'), newId('tab-panel')];
    const panel = h('div', { role: 'tabpanel', id: panelId, 'aria-labelledby': id, tabindex: -1 });
    const button = h('button', { type: 'button', role: 'tab', id, 'aria-controls': panelId, onclick: () => this.choose(at),
      onkeydown: (event: KeyboardEvent) => this.onKey(event, at) }, tab.name);
    button.addEventListener('tab-shown', () => {
      if (this.shown.has(at)) return;
      this.shown.add(at);
      replace(panel, h('p', { class: 'faint' }, 'Working ...'));
      tab.show(panel).catch((error: unknown) => {
        this.shown.delete(at);
        replace(panel, refusal(error));
      });
    });
    this.buttons.push(button);
    this.panels.push(panel);
    this.list.append(button);
    this.element.append(panel);
  }

  private choose(at: number): void {
    this.buttons.forEach((button, i) => {
      button.setAttribute('aria-selected', String(i === at));
      button.tabIndex = i === at ? 0 : -1;
      this.panels[i].hidden = i !== at;
    });
    this.buttons[at].dispatchEvent(new Event('tab-shown'));
  }

  private onKey(event: KeyboardEvent, at: number): void {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step === undefined) return;
    const next = (at + step + this.buttons.length) % this.buttons.length;
    this.choose(next);
    this.buttons[next].focus();
    event.preventDefault();
  }
}

export const refusal = (error: unknown): HTMLElement =>
  h('p', { class: 'refusal', role: 'alert' }, error instanceof Error ? error.message : String(error));
