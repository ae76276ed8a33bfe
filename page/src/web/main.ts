// The analyzer's page: files are given, a worker explains them, and the answers stand in tabs. Nothing leaves the tab.
import '../styles/page.css';
import '../styles/web.css';
import { h, replace } from '../view/dom';
import { Answers, refusal } from './answers';
import { ofDrop, ofInput, ofText } from './given_files';
import { isServed, kOneFile, loadParts } from './parts';
import type { NamedFile, Settings } from './protocol';
import { Cancelled, Run, type Opened, type Parts } from './run';
import { SettingsForm } from './settings_form';

const kMostNamed = 12;

// While a run works: what it does, how far it is, and how to end it.
class StatusLine {
  readonly stage = h('span', { class: 'stage', role: 'status' });
  readonly element: HTMLElement;
  private readonly bar = h('progress', { max: 1, 'aria-label': 'How far it is' });

  constructor(onCancel: () => void) {
    this.element = h('div', { class: 'panel status', hidden: true }, this.stage, this.bar,
      h('button', { type: 'button', onclick: onCancel }, 'Cancel'));
  }

  show(stage: string, share: number | null): void {
    this.element.hidden = false;
    this.stage.textContent = stage;
    if (share === null) this.bar.removeAttribute('value');
    else this.bar.value = share;
  }

  hide(): void {
    this.element.hidden = true;
    this.stage.textContent = '';
  }
}

class WebPage {
  private readonly status = new StatusLine(() => this.cancel());
  private readonly outcome = h('div', { 'aria-live': 'polite' });
  private readonly form = new SettingsForm(() => { if (this.files.length > 0) void this.explain(this.files); });
  private readonly parts: Promise<Parts> = loadParts();
  private files: NamedFile[] = [];
  private run: Run | null = null;

  constructor(private readonly root: HTMLElement) {
    this.parts.catch(() => undefined); // told when it is needed
    replace(root, h('header', { class: 'top' }, h('h1', {}, 'Ashlar'), h('span', { class: 'faint source' }, 'why GPU memory ran out')),
      h('main', { id: 'main', tabindex: -1 }, this.dropPanel(), this.status.element, this.outcome),
      h('footer', {}, ...offline(), ' Its policy lets no request leave. ',
        'The program ashlar answers the same in a terminal, and runs programs without a GPU.'));
    this.takeDrops();
    document.documentElement.dataset.ready = 'all';
  }

  private dropPanel(): HTMLElement {
    const take = (input: HTMLInputElement): void => {
      void this.explain(ofInput(input.files ?? []));
      input.value = '';
    };
    const files = h('input', { type: 'file', multiple: true, class: 'off-screen', tabindex: -1, 'aria-label': 'Files', onchange: () => take(files) });
    const folder = h('input', { type: 'file', webkitdirectory: true, class: 'off-screen', tabindex: -1, 'aria-label': 'A folder', onchange: () => take(folder) });
    const text = h('textarea', { 'aria-label': 'An error message or a log', spellcheck: 'false', placeholder: 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate ...' });
    return h('section', { class: 'drop', 'aria-label': 'What to explain' },
      h('p', { class: 'lead' }, 'Drop a memory snapshot, a recording or a log. It stays on this machine: nothing is uploaded.'),
      h('div', { class: 'row' },
        h('button', { type: 'button', class: 'chief', onclick: () => files.click() }, 'Choose files'),
        h('button', { type: 'button', onclick: () => folder.click() }, 'Choose a folder'), files, folder),
      h('p', { class: 'faint' }, 'A log with the snapshot of its failure, the ranks of a job, two to compare, or a folder of them.'),
      h('details', { class: 'paste' }, h('summary', {}, 'Or paste an error message'), text,
        h('button', { type: 'button', onclick: () => { if (text.value.trim() !== '') void this.explain(ofText(text.value)); } }, 'Explain the text')),
      h('details', { class: 'paste' }, h('summary', {}, 'What is known besides'), this.form.element));
  }

  private takeDrops(): void {
    const panel = this.root.querySelector('.drop')!;
    addEventListener('dragover', (event) => { event.preventDefault(); panel.classList.add('over'); });
    addEventListener('dragleave', (event) => { if (event.relatedTarget === null) panel.classList.remove('over'); });
    addEventListener('drop', (event) => {
      event.preventDefault();
      panel.classList.remove('over');
      if (event.dataTransfer !== null) void ofDrop(event.dataTransfer).then((files) => this.explain(files), (error) => replace(this.outcome, refusal(error)));
    });
  }

  private cancel(): void {
    this.run?.cancel();
    this.run = null;
    this.status.hide();
  }

  private async explain(files: NamedFile[]): Promise<void> {
    if (files.length === 0) return;
    this.run?.cancel();
    this.files = files;
    replace(this.outcome);
    this.status.show('loading the analyzer', null);
    try {
      const run = new Run(await this.parts, (stage, share) => { if (this.run === run) this.status.show(stage, share); });
      this.run = run;
      const opened = await run.open(files, this.form.settings);
      this.show(run, opened);
    } catch (error) {
      if (!(error instanceof Cancelled)) replace(this.outcome, h('section', { class: 'panel', 'aria-label': 'No answer' }, refusal(error)));
    }
    this.status.hide();
  }

  private show(run: Run, opened: Opened): void {
    const ask = async (what: Parameters<Run['ask']>[0], settings?: Settings): Promise<string> => {
      try {
        return await run.ask(what, settings);
      } finally {
        if (this.run === run) this.status.hide();
      }
    };
    replace(this.outcome, notes(opened), new Answers(ask, opened.text, opened.read, opened.traces).element);
    this.outcome.scrollIntoView({ block: 'nearest' });
  }
}

const offline = (): Node[] => (isServed()
  ? [h('span', {}, 'To use it without a network, keep '), h('a', { href: kOneFile, download: kOneFile }, 'the same page as one file'), h('span', {}, '.')]
  : [h('span', {}, 'Works without a network, from one file.')]);

function notes(opened: Opened): HTMLElement | null {
  const { read, left, events } = opened;
  if (events === null && left.length === 0 && read.length < 2) return null;
  const lines = left.map(({ line }) => h('li', {}, line));
  return h('section', { class: 'panel note', 'aria-label': 'What was read' },
    events === null ? null : h('p', {}, `Not all of it fits into a browser's memory: this is of the last ${events.toLocaleString('en')} events of each GPU. ashlar explain takes it whole.`),
    read.length < 2 ? null : h('p', {}, `${read.length} files: ${read.slice(0, kMostNamed).join(', ')}${read.length > kMostNamed ? ` and ${read.length - kMostNamed} more` : ''}`),
    lines.length === 0 ? null : h('details', { open: lines.length <= kMostNamed }, h('summary', {}, `${lines.length} left out`), h('ul', { class: 'files' }, ...lines)));
}

new WebPage(document.getElementById('page')!);
