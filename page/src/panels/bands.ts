// The blocks of a run over time: allocated memory, a band for each block. The reader chooses the colours, points at a band to read what it
// is, and clicks to keep its block.
import type { App, LiveRun } from '../app';
import { isPrivatePool } from '../app';
import { BlockColours, coloursOf, kColourNames } from '../model/block_colours';
import { cost } from '../model/cost';
import { pathOf } from '../model/holders';
import { leftOutText } from '../model/left_out';
import { bytes, count, duration, percent } from '../view/format';
import { h, replace } from '../view/dom';
import { css } from '../view/palette';
import type { ColourBy } from '../view/state';
import { BandPainter, type BandLook } from './band_paint';
import { holderOf, labelOf } from './block_text';
import { Curve, type CurveLayer } from './curve';
import type { Frame } from './curve_paint';
import { marking } from './marks';

const kOffered: ColourBy[] = ['name', 'stack', 'phase', 'size', 'text'];
const kFrames = 3; // of a stack that the note beside the pointer has

export class Bands implements CurveLayer {
  readonly element: HTMLElement;
  readonly curve: Curve;
  private readonly painter: BandPainter;
  private readonly colours: BlockColours;
  private readonly offered: ColourBy[];
  private readonly usual: ColourBy; // by name where most has one
  private readonly choice: HTMLSelectElement;
  private readonly legend = h('ul', { class: 'legend', 'aria-label': 'Colours of the bands' });
  private frame: Frame | null = null; // as last drawn
  private painted = ''; // what the picture shows, so that it is painted anew only where that is another

  constructor(private readonly app: App, private readonly run: LiveRun, labels: string[], private readonly onStale: () => void) {
    const { data, memory } = run;
    const input = app.input(data.run.input);
    this.painter = new BandPainter(run);
    this.colours = new BlockColours(data, memory.blocks, input, labels);
    const { bands } = this.painter;
    this.offered = kOffered.filter((by) => coloursOf(data, input).includes(by));
    this.usual = this.offered.find((by) => by !== 'name' || bands.shareOf((block) => (memory.blocks.holder?.[block] ?? -1) >= 0) >= 0.5) ?? 'size';
    this.choice = h('select', { 'aria-label': 'Colour of the bands', onchange: () =>
      app.store.set({ bands: this.choice.value as ColourBy }, 'jump') },
      ...this.offered.map((by) => h('option', { value: by }, `colour by ${by === 'size' ? 'size class' : kColourNames[by]}`)));
    this.curve = new Curve(app, data, data.run.input, { height: 320, label: 'Blocks over time', layer: this });
    const all = memory.blocks.count;
    this.element = h('section', { class: 'panel', id: 'bands', 'aria-label': 'Blocks over time' },
      h('div', { class: 'toolbar' }, h('h2', {}, 'Blocks over time'), this.choice,
        h('span', { class: 'hint' }, 'Allocated memory, a band for each block. Point at one to see who made it; a click keeps it.')),
      this.curve.element, this.legend,
      bands.drawn === all ? null : h('p', { class: 'faint' },
        `${count(bands.drawn)} of ${count(all)} blocks have a band of their own, those with most bytes × time. The grey band on top is the others: ${percent(bands.shareOfOthers)} of all bytes × time.`),
      data.run.left_out.blocks === 0 ? null : h('p', { class: 'faint' }, `${leftOutText(data.run)} The grey band on top has their bytes.`),
      data.run.is_thinned ? h('p', { class: 'faint' }, 'Blocks that came and went between two moments of this page are left out.') : null);
  }

  private get by(): ColourBy {
    const { bands } = this.app.view;
    return bands !== null && this.offered.includes(bands) ? bands : this.usual;
  }

  get most(): number {
    return this.run.data.run.peaks.allocated.bytes;
  }

  paint(frame: Frame): void {
    ++cost.bands;
    this.frame = frame;
    this.painter.draw(frame);
    if (this.wanted(frame) !== this.painted) this.onStale();
  }

  // At rest: paints what is shown now; false where a piece was not enough.
  drawSome(all = false): boolean {
    const { frame } = this;
    if (frame === null) return true;
    const key = this.wanted(frame);
    if (key !== this.painted) {
      this.painted = key;
      this.painter.begin(frame, this.look());
    }
    if (!this.painter.paintSome(all)) return false;
    this.curve.redraw();
    return true;
  }

  drawLegend(): void {
    const { theme } = this.app;
    this.choice.value = this.by;
    const rows = this.colours.legend(this.by, theme);
    replace(this.legend, ...rows.map(({ colour, text }) => {
      const swatch = h('span', { class: 'swatch', 'aria-hidden': 'true' });
      swatch.style.background = css(colour);
      return h('li', {}, swatch, text);
    }));
  }

  forgetColours(): void {
    this.colours.forget();
  }

  tip(place: number, height: number): string[] {
    const picked = this.painter.pick(place, height);
    if (picked === null || picked.found === null) return [];
    const { data } = this.run;
    const allocated = `${bytes(data.value('allocated', picked.moment) ?? 0)} allocated here`;
    if (picked.found === 'others') return [`others: ${bytes(this.painter.bands.others)}`, 'blocks with few bytes × time', allocated];
    const block = picked.found;
    const { blocks } = this.run.memory;
    const name = holderOf(this.app, this.run, block);
    const stack = blocks.stack[block];
    const frames = stack < 0 ? [] : pathOf(this.app.input(data.run.input), stack, false).reverse();
    return [`${bytes(blocks.size[block])}${name === null ? '' : ` ${name}`}`, ...(frames.length > 0 ? frames.slice(0, kFrames) : [labelOf(this.app, this.run, block)]),
      `${this.whenText(blocks.alloc[block], blocks.allocEvent[block] < 0, 'since before the trace', 'since')}, ` +
      this.whenText(blocks.freed[block], !blocks.isFreedInWindow(block), 'not freed in this trace', 'until'), allocated];
  }

  choose(place: number, height: number): { moment: number; block: number | null } | null {
    const picked = this.painter.pick(place, height);
    return picked === null ? null : { moment: picked.moment, block: typeof picked.found === 'number' ? picked.found : null };
  }

  private wanted({ axis, from, to, width, height, most }: Frame): string {
    const { view, theme } = this.app;
    return JSON.stringify([axis, from, to, width, height, most, this.by, view.block, view.stack, view.group, view.pin, view.cause, view.pools, theme.paper]);
  }

  private whenText(moment: number, isOutside: boolean, outside: string, word: string): string {
    if (isOutside) return outside;
    const { data } = this.run;
    const at = Math.min(moment, data.count - 1);
    const time = data.time === null ? '' : ` (${duration(Math.max(0, data.time[at] - data.time[0]))})`;
    return `${word} event ${count(Math.max(0, data.event[at]))}${time}`;
  }

  private look(): BandLook {
    const { view, theme } = this.app;
    const { data, memory } = this.run;
    return {
      colour: this.colours.painter(this.by, 0, theme), isShown: (block) => view.pools || !isPrivatePool(data, memory.blocks.pool[block]),
      isMarked: marking(this.app, this.run, (block) => this.colours.phase(block)), selected: view.block, theme };
  }
}
