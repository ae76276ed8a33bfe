// Opens the page: reads the document, draws the verdict at once, then the curves, then the map.
import 'uplot/dist/uPlot.min.css';
import './styles/page.css';
import { App, startOf } from './app';
import { Blobs, readIndex } from './document/load';
import { dryRunPanel } from './panels/cards';
import { diffPanel } from './panels/diff';
import { estimatePanel } from './panels/estimate';
import { fitPanel } from './panels/fit';
import { FleetPanel } from './panels/fleet';
import { InputPage } from './panels/input_page';
import { Multiples } from './panels/multiples';
import { cost } from './model/cost';
import { isForetold, nameOfInput, orderOfInputs } from './model/inputs';
import { h, replace, reveal } from './view/dom';
import { readTheme } from './view/palette';
import { kStart, type Theme } from './view/state';
import { Store } from './view/store';

function start(): void {
  const root = document.getElementById('page')!;
  const doc = readIndex(document);
  const store = new Store({ ...kStart, ...startOf(doc, orderOfInputs(doc)[0] ?? 0) });
  setTheme(store.view.theme);
  const app = new App(doc, Blobs.ofPage(document), store);

  const theme = h('select', { 'aria-label': 'Light or dark', onchange: () => store.set({ theme: theme.value as Theme }) },
    ...(['auto', 'light', 'dark'] as const).map((name) => h('option', { value: name }, name)));
  theme.value = store.view.theme;
  const holder = h('div');
  const multiples = doc.inputs.length > 1 ? new Multiples(app) : null;
  const fleet = doc.fleet === null ? null : new FleetPanel(app, doc.fleet);
  const dryRun = doc.dry_run === null ? null : dryRunPanel(doc.dry_run);
  const heading = h('h1', {}, doc.title);
  const source = h('span', { class: 'faint source' });
  replace(root,
    h('a', { class: 'skip', href: '#main' , onclick: (event: Event) => { event.preventDefault(); main.focus(); } }, 'To the answer'),
    h('header', { class: 'top' }, heading, source, h('span', { class: 'grow' }), theme));
  const main = h('main', { id: 'main', tabindex: -1 },
    doc.estimate === null ? null : estimatePanel(doc.estimate),
    dryRun,
    doc.fit === null ? null : fitPanel(doc.fit),
    fleet?.element, multiples?.element, holder, doc.diff === null ? null : diffPanel(doc.diff));
  root.append(main, h('footer', {}, h('span', {}, `${doc.made_by}: `), h('code', {}, doc.command),
    h('span', {}, ' This file asks nothing of a network.')));

  let page: InputPage | null = null;
  const show = (): void => {
    if (doc.inputs.length === 0 || page?.index === store.view.input) return;
    page?.leave();
    page = new InputPage(app, Math.min(store.view.input, doc.inputs.length - 1));
    replace(holder, page.element);
    // What to do is on top.
    if (dryRun !== null && doc.dry_run?.ended_early === null && app.input(page.index).explanation.actions.length > 0) page.element.firstElementChild!.after(dryRun);
    if (isForetold(doc)) return;
    source.textContent = app.input(page.index).explanation.source;
    if (doc.inputs.length < 2 || doc.fleet !== null) return;
    heading.textContent = nameOfInput(doc, page.index);
    document.title = `${heading.textContent} - ${doc.title}`;
  };
  store.onFrame((changed, view) => {
    if (changed.has('theme')) {
      setTheme(view.theme);
      theme.value = view.theme;
      app.theme = readTheme();
      fleet?.draw();
    }
    if (changed.has('input')) show();
    multiples?.onFrame(changed);
    page?.onFrame(changed);
  });
  store.onRest((changed, how) => {
    page?.onRest(changed);
    multiples?.onRest();
    if (how !== 'jump') return;
    if (changed.has('input')) reveal(holder);
    else page?.reveal(changed);
  });
  show();
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
    app.theme = readTheme();
    fleet?.draw();
    store.refresh();
  });
  // Paper is light, whatever the screen is.
  const onPaper = (isPaper: boolean): void => {
    setTheme(isPaper ? 'light' : store.view.theme);
    app.theme = readTheme();
    fleet?.draw();
    page?.onFrame(new Set(['theme', 'moment']));
    page?.onRest(new Set(['theme']));
    page?.finish();
    multiples?.onFrame(new Set(['theme']));
    multiples?.onRest();
  };
  addEventListener('beforeprint', () => onPaper(true));
  addEventListener('afterprint', () => onPaper(false));
  matchMedia('print').addEventListener('change', (event) => onPaper(event.matches));
  if (doc.inputs.length === 0) document.documentElement.dataset.ready = 'all';
}

function setTheme(theme: Theme): void {
  if (theme === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

(globalThis as { ashlarCost?: typeof cost }).ashlarCost = cost; // for tests
try {
  start();
} catch (error) {
  const text = error instanceof Error ? error.message : String(error);
  replace(document.getElementById('page')!, h('main', {}, h('h1', {}, 'The page cannot be shown'), h('p', { role: 'alert' }, text)));
  console.error(error);
}
