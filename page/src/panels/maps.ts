// The segment map with its switches, and the map of a what-if beside it.
import type { App, LiveRun } from '../app';
import { groupLabel, rankLabels } from '../model/holders';
import { leftOutText } from '../model/left_out';
import { bytes } from '../view/format';
import { h, replace } from '../view/dom';
import { css } from '../view/palette';
import { coloursOf, kColourNames } from '../model/block_colours';
import type { ColourBy } from '../view/state';
import { SegmentMap } from './map';

export class Maps {
  readonly element: HTMLElement;
  readonly main: SegmentMap;
  private other: { index: number; map: SegmentMap } | null = null;
  private readonly both = h('div', { class: 'maps' });
  private readonly legend = h('ul', { class: 'legend', 'aria-label': 'Colours of the map' });
  private readonly status = h('p', { class: 'off-screen', role: 'status' });
  private readonly colour: HTMLSelectElement;
  private readonly layout: HTMLSelectElement;
  private readonly order: HTMLSelectElement;
  private readonly pins = h('input', { type: 'checkbox' });
  private readonly pools = h('input', { type: 'checkbox' });
  private readonly clear = h('button', { type: 'button', class: 'quiet', hidden: true }, 'Clear marks');
  readonly labels: string[]; // that have colours of their own

  constructor(private readonly app: App, run: LiveRun) {
    run.live.moveTo(run.data.run.verdict_moment);
    this.labels = rankLabels(run.live, run.memory.blocks, run.data.time ?? run.data.x, groupLabel(run.memory.blocks, run.data, app.input(), 'line', () => null));
    this.main = new SegmentMap(app, run, this.labels, (text) => { this.status.textContent = text; });
    const can = coloursOf(run.data, app.input());
    this.colour = h('select', { 'aria-label': 'Colour by', onchange: () =>
      app.store.set({ colour: this.colour.value as ColourBy }, 'jump') }, ...can.map((by) => h('option', { value: by }, `colour by ${kColourNames[by]}`)));
    this.layout = h('select', { 'aria-label': 'Layout', onchange: () =>
      app.store.set({ layout: this.layout.value === 'rows' ? 'rows' : 'scale' }, 'jump') },
      h('option', { value: 'scale' }, 'to scale'), h('option', { value: 'rows' }, 'a row a segment'));
    this.order = h('select', { 'aria-label': 'Order', onchange: () =>
      app.store.set({ order: this.order.value === 'address' ? 'address' : 'holes' }, 'jump') },
      h('option', { value: 'holes' }, 'holes first'), h('option', { value: 'address' }, 'by address'));
    this.pools.addEventListener('change', () => app.store.set({ pools: this.pools.checked }, 'jump'));
    this.pins.addEventListener('change', () => app.store.set({ pins: this.pins.checked }, 'jump'));
    this.clear.addEventListener('click', () => app.store.set({ stack: null, pin: null, cause: null, block: null }, 'jump'));
    this.element = h('div', { class: 'map-panel' },
      h('div', { class: 'toolbar' }, h('h2', {}, 'Segments at the moment'), this.colour, this.layout, this.order,
        h('label', { class: 'check' }, this.pins, 'mark pins'),
        run.data.run.pools.every((pool) => pool === 'default') ? null : h('label', { class: 'check' }, this.pools, 'private pools'), this.clear,
        h('span', { class: 'hint', id: 'map-keys' }, 'Point at a block, or focus the map and use the arrow keys; Enter selects, Escape lets go.')),
      this.both, this.legend, run.data.run.left_out.blocks === 0 ? null : h('p', { class: 'faint' }, leftOutText(run.data.run)), this.status);
    this.both.appendChild(h('figure', {}, this.main.element));
  }

  draw(): void {
    const { view } = this.app;
    this.colour.value = view.colour;
    this.layout.value = view.layout;
    this.order.value = view.order;
    this.pins.checked = view.pins;
    this.pools.checked = view.pools;
    this.clear.hidden = view.stack === null && view.pin === null && view.cause === null && view.block === null;
    this.drawMoment();
  }

  // What changes while the moment slides.
  drawMoment(): void {
    this.main.draw();
    this.other?.map.draw();
  }

  // What is too dear for every frame.
  drawAtRest(): void {
    for (const map of [this.main, this.other?.map]) {
      map?.findPins();
      map?.arrange();
    }
    this.draw();
  }

  drawLegend(): void {
    const { theme, view } = this.app;
    const entry = (colour: string, text: string): HTMLElement => {
      const swatch = h('span', { class: 'swatch', 'aria-hidden': 'true' });
      swatch.style.background = colour;
      return h('li', {}, swatch, text);
    };
    const pools = this.app.observed()?.run.pools ?? [];
    replace(this.legend, ...this.main.colours.legend(view.colour, theme).map((row) => entry(css(row.colour), row.text)),
      entry(css(theme.stranded), 'hole: stranded'), entry(css(theme.free), 'free segment'),
      pools.some((pool) => pool !== 'default') ? entry(css(theme.privateFree), "hole of a private pool") : null,
      view.pins ? entry(css(theme.failure), 'pin: keeps a hole') : null);
  }

  // Shows or hides the map of a what-if.
  async drawOther(): Promise<void> {
    const { run: index } = this.app.view;
    if (index === (this.other?.index ?? null)) return;
    this.other = null;
    this.both.children[1]?.remove();
    this.both.classList.toggle('two', index !== null);
    if (index === null || this.app.doc.runs[index] === undefined) return;
    const live = await this.app.loadLive(index);
    if (live === null || this.app.view.run !== index) return;
    const map = new SegmentMap(this.app, live, this.labels, (text) => { this.status.textContent = text; });
    this.other = { index, map };
    this.both.appendChild(h('figure', {}, h('figcaption', {}, `under ${live.data.run.name || 'default'}: at most ${bytes(live.data.run.peaks.reserved.bytes)} reserved${live.data.run.projected_from === null ? '' : '; what is projected has no stacks'}`),
      map.element));
    map.draw();
  }

  forgetColours(): void {
    this.main.colours.forget();
    this.other?.map.colours.forget();
  }
}
