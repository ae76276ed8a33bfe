// Several inputs side by side: a small curve each, with one cursor over all. A click on a name shows its details below.
import type { App } from '../app';
import type { View } from '../view/state';
import { nameOfInput, orderOfInputs, titleOfInputs } from '../model/inputs';
import { bytesOrUnknown } from '../view/format';
import { h, panel } from '../view/dom';
import { Curve } from './curve';

export class Multiples {
  readonly element: HTMLElement;
  private readonly cells: { index: number; cell: HTMLElement; button: HTMLButtonElement; curve: Curve | null }[] = [];

  constructor(private readonly app: App) {
    const grid = h('div', { class: 'multiples' });
    for (const index of orderOfInputs(app.doc)) {
      const input = app.input(index);
      const name = nameOfInput(app.doc, index);
      const button = h('button', { type: 'button', class: 'link', onclick: () => app.showInput(index) }, name);
      const cell = h('figure', {}, h('figcaption', {}, button,
        h('span', { class: `badge ${input.explanation.verdict}` }, input.explanation.verdict),
        input.runs.length === 0 ? null
          : h('span', { class: 'faint' }, `peak reserved ${bytesOrUnknown(input.explanation.peak.reserved_bytes)}`)));
      const entry: (typeof this.cells)[number] = { index, cell, button, curve: null };
      this.cells.push(entry);
      grid.appendChild(cell);
      const run = app.observedIndex(index);
      if (run !== null)
        void app.loadRun(run).then((data) => {
          entry.curve = new Curve(app, data, index, { height: 120, isSmall: true });
          cell.appendChild(entry.curve.element);
          entry.curve.fit();
          entry.curve.redraw();
        });
    }
    this.element = panel(titleOfInputs(app.doc), { id: 'inputs' }, grid);
    this.mark();
  }

  onFrame(changed: Set<keyof View>): void {
    if (changed.has('input')) this.mark();
    const isAll = ['from', 'to', 'axis', 'theme'].some((key) => changed.has(key as keyof View));
    for (const { curve } of this.cells) {
      if (isAll) curve?.redrawInSight();
      else if (changed.has('moment')) curve?.moveMarker();
    }
  }

  onRest(): void {
    for (const { curve } of this.cells) curve?.redrawStale();
  }

  private mark(): void {
    for (const { index, cell, button } of this.cells) {
      cell.classList.toggle('chosen', index === this.app.view.input);
      button.setAttribute('aria-pressed', String(index === this.app.view.input));
    }
  }
}
