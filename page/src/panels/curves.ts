// The curves of one input with their legend: each line has a switch and its value at the moment.
import type { App } from '../app';
import type { RunData } from '../model/run_data';
import { bytes, count } from '../view/format';
import { h, replace, write } from '../view/dom';
import { css, type Rgb } from '../view/palette';
import { Curve, kLines, overlayColour } from './curve';
import { nameColours } from './curve_paint';

export class Curves {
  readonly element: HTMLElement;
  readonly curve: Curve;
  private readonly values = new Map<string, HTMLElement>();
  private readonly overlays = h('ul', { class: 'legend overlays' });
  private readonly axis: HTMLSelectElement;
  private readonly whole = h('button', { type: 'button', class: 'quiet' }, 'Whole run');
  private readonly swatches: { element: HTMLElement; colour: () => Rgb }[] = [];

  constructor(private readonly app: App, private readonly data: RunData, input: number) {
    const phaseColour = nameColours();
    for (const phase of data.run.phases) phaseColour(phase.name);
    this.curve = new Curve(app, data, input, { height: 300, phaseColour });
    this.axis = h('select', { 'aria-label': 'Horizontal axis', onchange: () => {
      app.store.set({ axis: this.axis.value === 'time' ? 'time' : 'event', from: null, to: null }, 'jump');
    } }, h('option', { value: 'event' }, 'by event'), data.time === null ? null : h('option', { value: 'time' }, 'by time'));
    this.whole.addEventListener('click', () => app.store.set({ from: null, to: null }, 'jump'));
    const zoom = (label: string, text: string, factor: number): HTMLElement =>
      h('button', { type: 'button', class: 'quiet', 'aria-label': label, title: label, onclick: () => this.zoom(factor) }, text);
    const lines = kLines.filter((line) => data.sums[line.sum] !== undefined).map((line) => {
      const value = h('span', { class: 'slot' });
      this.values.set(line.sum, value);
      const swatch = this.swatch(() => app.theme[line.key]);
      return h('li', {}, h('label', {}, h('input', { type: 'checkbox', checked: true, onchange: (event: Event) =>
        this.curve.toggle(line.sum, (event.target as HTMLInputElement).checked) }), swatch, line.name, h('span', { class: 'value' }, value)));
    });
    const phases = [...new Set(data.run.phases.map((phase) => phase.name))].slice(0, 8)
      .map((name) => h('li', {}, this.swatch(() => phaseColour(name)), name));
    this.element = h('div', { class: 'curves' },
      h('div', { class: 'toolbar' }, h('h2', {}, 'Memory over time'), this.axis,
        h('span', { class: 'row' }, zoom('Zoom in', '+', 0.5), zoom('Zoom out', '−', 2), this.whole),
        h('span', { class: 'hint', id: 'curve-keys' },
          'Ctrl+wheel or a pinch zooms, drag chooses a part, Shift-drag pans, a click sets the moment. Keys: ← → moment, + − zoom, Shift ← → pan, 0 all.')),
      h('ul', { class: 'legend' }, ...lines), this.overlays, this.curve.element,
      data.run.is_thinned ? h('p', { class: 'faint thinned' },
        `${count(data.count)} moments of ${count(data.run.event_count)} events are here: highs and lows, failures, steps and what the answer names. Each is exact.`) : null,
      phases.length === 0 ? null : h('ul', { class: 'legend phases', 'aria-label': 'Phases, the strip above the curves' }, ...phases));
  }

  // What changes while the moment slides.
  drawMoment(): void {
    this.curve.moveMarker();
    const moment = this.app.moment;
    for (const [sum, element] of this.values) {
      write(element, bytes(this.data.value(sum as never, moment) ?? 0));
    }
  }

  draw(): void {
    this.axis.value = this.data.time === null ? 'event' : this.app.view.axis;
    this.curve.fit();
    for (const { element, colour } of this.swatches) element.style.background = css(colour());
    this.drawWindow();
    this.curve.redrawStale(); // what was loaded meanwhile may come after the view has come to rest
    this.drawMoment();
  }

  // What changes while a reader zooms or pans.
  drawWindow(): void {
    const visibility = this.app.view.from === null ? 'hidden' : 'visible'; // keeps its place: nothing is laid out anew
    if (this.whole.style.visibility !== visibility) this.whole.style.visibility = visibility;
    this.curve.redrawInSight();
  }

  drawOverlays(): void {
    replace(this.overlays, ...this.app.view.overlays.flatMap((index) => {
      const run = this.app.doc.runs[index];
      if (run === undefined) return [];
      const swatch = h('span', { class: 'swatch line', 'aria-hidden': 'true' });
      swatch.style.background = css(overlayColour(run.what_if_row ?? 0));
      return [h('li', {}, swatch, `reserved under ${run.name || 'default'}`)];
    }));
  }

  private zoom(factor: number): void {
    const { from, to } = this.curve.shown();
    const whole = this.curve.whole();
    const place = this.data.places(this.app.view.axis)[this.app.moment];
    const middle = place >= from && place <= to ? place : (from + to) / 2;
    const next = { from: Math.max(whole.from, middle - (middle - from) * factor), to: Math.min(whole.to, middle + (to - middle) * factor) };
    const isAll = next.from <= whole.from && next.to >= whole.to;
    this.app.store.set(isAll ? { from: null, to: null } : next, 'jump');
  }

  private swatch(colour: () => Rgb): HTMLElement {
    const element = h('span', { class: 'swatch', 'aria-hidden': 'true' });
    this.swatches.push({ element, colour });
    return element;
  }
}
