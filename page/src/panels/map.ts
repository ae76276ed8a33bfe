// The segment map of a run at the view's moment. Hover and focus tell a block; a click selects it.
import { isPrivatePool, type App, type LiveRun } from '../app';
import { BlockColours } from '../model/block_colours';
import { cost } from '../model/cost';
import { blocksInOrder, findHoles } from '../model/holes';
import { hit, holesFirst, layOut, type MapLayout } from '../model/map_layout';
import { seenOf, type Standing } from '../model/segments';
import { bytes, count } from '../view/format';
import { h } from '../view/dom';
import { css } from '../view/palette';
import { Tip } from '../view/tip';
import { blockLine, holderOf } from './block_text';
import { marking } from './marks';
import { MapPainter } from './map_paint';

const kRowHeight = { scale: 15, rows: 18 };
const kGutter = 136;

export class SegmentMap {
  readonly element: HTMLElement;
  readonly colours: BlockColours;
  private readonly canvas = h('canvas', { class: 'rows', 'aria-hidden': 'true' }); // a pixel high a row: the style stretches it
  private readonly spacer = h('div', { class: 'map-spacer' }); // as high as all rows, with the gaps between them
  private readonly scroller: HTMLElement;
  private readonly tip: Tip;
  private readonly painter: MapPainter;
  private layout: MapLayout | null = null;
  private standing: Standing | null = null;
  private layoutKey = '';
  private arranged = 0; // times
  private seenFrom: { all: Standing; seen: Standing } | null = null;
  private gutter = 0; // pixels left of the rows
  private image: ImageData | null = null;
  private pixels = new Uint32Array(0); // of the image
  private box: { width: number; height: number } | null = null; // of what is seen, as last told: asking lays the page out
  private scrollTop = 0;
  private pins: Set<number> | null = null;
  private readonly names = h('canvas', { 'aria-hidden': 'true', hidden: true }); // before the rows, where each has a segment
  private namesKey = '';
  private drawnRowHeight = 0;
  private focused: number | null = null;
  private context: CanvasRenderingContext2D | null = null;

  constructor(private readonly app: App, private readonly run: LiveRun, labels: string[], private readonly say: (text: string) => void) {
    this.colours = new BlockColours(run.data, run.memory.blocks, app.doc.inputs[run.data.run.input], labels);
    this.painter = new MapPainter(run);
    this.scroller = h('div', {
      class: 'map-scroll', tabindex: 0, role: 'application', 'aria-roledescription': 'segment map',
      'aria-label': `Segment map, ${run.data.run.name}`, 'aria-describedby': 'map-keys' }, this.canvas, this.names, this.spacer);
    this.element = h('div', { class: 'map' }, this.scroller);
    this.tip = new Tip(this.element);
    this.element.append(this.tip.element);
    this.scroller.addEventListener('scroll', () => {
      this.scrollTop = this.scroller.scrollTop;
      this.draw();
    });
    this.canvas.addEventListener('pointermove', (event) => this.hover(event));
    this.canvas.addEventListener('pointerleave', () => this.tip.hide());
    this.canvas.addEventListener('click', (event) => {
      const block = this.blockAt(event.clientX, event.clientY);
      this.select(block);
    });
    this.scroller.addEventListener('keydown', (event) => { if (this.onKey(event)) event.preventDefault(); });
    new ResizeObserver(() => {
      this.box = this.measured();
      this.layoutKey = '';
      this.draw();
    }).observe(this.scroller);
  }

  private measured(): { width: number; height: number } {
    return { width: Math.floor(this.scroller.clientWidth), height: this.scroller.clientHeight };
  }

  private get isPrimary(): boolean {
    return this.run.data.run.kind === 'observed';
  }

  moment(): number {
    return this.app.momentIn(this.run.data);
  }

  // Marks those blocks that keep a hundredth of the stranded bytes or more; dear, so at rest only.
  findPins(): void {
    this.pins = null;
    const { view } = this.app;
    if (!view.pins) return;
    const { live, memory } = this.run;
    live.moveTo(this.moment());
    const holes = findHoles(live, memory.blocks, memory.segments, memory.segments.at(live.moment), (pool) => isPrivatePool(this.run.data, pool));
    this.pins = new Set();
    for (let i = 0; i < holes.order.length; ++i)
      if (holes.blame[i] > 0 && holes.blame[i] >= holes.stranded / 100) this.pins.add(holes.order[i]);
  }

  draw(): void {
    const { view, theme } = this.app;
    const { width: full, height: wanted } = (this.box ??= this.measured());
    if (full <= 0) {
      this.box = null; // not in the document yet
      return;
    }
    ++cost.maps;
    this.gutter = view.layout === 'rows' && full > 480 ? kGutter : 0;
    const width = full - this.gutter;
    const { live, memory } = this.run;
    const moment = this.moment();
    live.moveTo(moment);
    const standing = this.seen(memory.segments.at(moment));
    const rowHeight = kRowHeight[view.layout];
    const key = `${standing.from} ${view.layout} ${view.order} ${width} ${wanted}`;
    if (key !== this.layoutKey || this.layout === null || standing !== this.standing) {
      const most = this.mostReserved();
      this.layout = layOut(standing, view.layout, width, most, Math.max(4, Math.floor(wanted / rowHeight) - 1),
        view.order === 'holes' ? holesFirst(standing, this.painter.usedOf(standing)) : undefined);
      this.layoutKey = key;
      this.standing = standing;
      this.spacer.style.height = `${this.layout.rows * rowHeight}px`;
    }
    const firstRow = Math.max(0, Math.floor(this.scrollTop / rowHeight));
    const lastRow = Math.min(this.layout.rows, firstRow + Math.ceil(wanted / rowHeight) + 1);
    const rows = Math.max(1, lastRow - firstRow);
    if (this.image === null || this.image.width !== width || this.image.height !== rows || this.drawnRowHeight !== rowHeight) {
      this.image = new ImageData(width, rows);
      this.pixels = new Uint32Array(this.image.data.buffer);
      this.canvas.width = width;
      this.canvas.height = rows;
      this.drawnRowHeight = rowHeight;
      Object.assign(this.canvas.style, { left: `${this.gutter}px`, width: `${width}px`, height: `${rows * rowHeight}px` });
      this.scroller.style.setProperty('--row', `${rowHeight}px`);
    }
    const transform = `translateY(${firstRow * rowHeight}px)`;
    if (this.canvas.style.transform !== transform) this.canvas.style.transform = transform;
    this.painter.paint({
      layout: this.layout, standing, firstRow, lastRow, colour: this.colours.painter(view.colour, moment, theme),
      isMarked: marking(this.app, this.run, (block) => this.colours.phase(block)), selected: this.isPrimary ? view.block : null, pins: this.pins, theme }, this.pixels);
    cost.pixels += this.pixels.length;
    const ctx = (this.context ??= this.canvas.getContext('2d', { willReadFrequently: true, alpha: false })!);
    ctx.putImageData(this.image, 0, 0);
    if (this.names.hidden !== (this.gutter === 0)) this.names.hidden = this.gutter === 0;
    if (this.gutter > 0) this.drawNames(standing, firstRow, rows, rowHeight);
  }

  // In a row of its own a segment has its size and kind before it.
  private drawNames(standing: Standing, firstRow: number, rows: number, rowHeight: number): void {
    const { theme } = this.app;
    const { names, gutter } = this;
    const key = `${this.layoutKey} ${standing.segment.length} ${firstRow} ${rows} ${css(theme.ink)} ${gutter} ${devicePixelRatio} ${this.arranged}`;
    if (key === this.namesKey) return;
    this.namesKey = key;
    names.width = Math.round(gutter * devicePixelRatio);
    names.height = Math.round(rows * rowHeight * devicePixelRatio);
    Object.assign(names.style, { width: `${gutter}px`, height: `${rows * rowHeight}px`, transform: this.canvas.style.transform });
    const ctx = names.getContext('2d')!;
    ctx.scale(devicePixelRatio, devicePixelRatio);
    ctx.fillStyle = css(theme.ink);
    ctx.font = '11px system-ui, sans-serif';
    ctx.textAlign = 'right';
    ctx.textBaseline = 'middle';
    for (let row = 0; row < rows && firstRow + row < standing.segment.length; ++row) {
      const slot = this.layout!.order[firstRow + row];
      ctx.fillText(`${bytes(standing.size[slot])} ${this.kindOf(standing.segment[slot])}`, this.gutter - 8, (row + 0.5) * rowHeight - 1);
    }
  }

  // Segments are put into their order anew when the view has come to rest, so that they lie still while it moves.
  arrange(): void {
    if (this.app.view.order !== 'holes') return;
    ++this.arranged;
    this.layoutKey = '';
  }

  private seen(standing: Standing): Standing {
    if (this.app.view.pools) return standing;
    if (this.seenFrom?.all !== standing) {
      const { pool } = this.run.memory.segments;
      this.seenFrom = { all: standing, seen: seenOf(standing, (segment) => !isPrivatePool(this.run.data, pool[segment])) };
    }
    return this.seenFrom.seen;
  }

  private kindOf(segment: number): string {
    const { segments } = this.run.memory;
    return segments.isExpandable(segment) ? 'expandable' : segments.isSmall(segment) ? 'small' : 'large';
  }

  // Scrolls so that a block is in view.
  reveal(block: number): void {
    if (this.layout === null || this.standing === null) return;
    const slot = this.painter.slot(this.standing, block);
    if (slot < 0) return;
    const at = this.layout.begin[slot] + (this.run.memory.blocks.address[block] - this.standing.address[slot]) * this.layout.perByte[slot];
    const top = Math.floor(at / this.layout.width) * kRowHeight[this.app.view.layout];
    const { scrollTop, clientHeight } = this.scroller;
    if (top < scrollTop || top > scrollTop + clientHeight - 20) this.scroller.scrollTop = Math.max(0, top - clientHeight / 2);
  }

  private mostReserved(): number {
    let most = 1;
    for (const run of [this.app.observed(), this.run.data]) most = Math.max(most, run?.run.peaks.reserved.bytes ?? 1);
    return most;
  }

  private blockAt(clientX: number, clientY: number): number | null {
    const place = this.placeAt(clientX, clientY);
    if (place === null) return null;
    const { live, memory: { blocks } } = this.run;
    let best: number | null = null;
    let distance = 2 / this.layout!.perByte[place.slot]; // a thin block is hit two pixels beside it
    for (let i = 0; i < live.count; ++i) {
      const block = live.list[i];
      const begin = blocks.address[block];
      const end = begin + blocks.size[block];
      const off = place.address < begin ? begin - place.address : place.address >= end ? place.address - end + 1 : 0;
      if (off < distance) {
        best = block;
        distance = off;
        if (off === 0) break;
      }
    }
    return best;
  }

  private placeAt(clientX: number, clientY: number): { slot: number; address: number } | null {
    if (this.layout === null || this.standing === null) return null;
    const box = this.scroller.getBoundingClientRect();
    const row = Math.floor((clientY - box.top + this.scroller.scrollTop) / kRowHeight[this.app.view.layout]);
    const x = Math.max(0, Math.min(this.layout.width - 1, Math.floor(clientX - box.left - this.gutter)));
    const found = hit(this.layout, row * this.layout.width + x);
    return found === null ? null : { slot: found.slot, address: this.standing.address[found.slot] + found.offset };
  }

  private hover(event: PointerEvent): void {
    const place = this.placeAt(event.clientX, event.clientY);
    if (place === null) {
      this.tip.hide();
      return;
    }
    const block = this.blockAt(event.clientX, event.clientY);
    this.tip.show(block === null ? this.freeTip(place) : this.blockTip(block), event.clientX, event.clientY);
  }

  private blockTip(block: number): string[] {
    const line = blockLine(this.app, this.run, block);
    return [`${line.size} ${line.state}`, holderOf(this.app, this.run, block) ?? '', line.label, `${line.request}; ${line.age}`, line.address];
  }

  private freeTip(place: { slot: number }): string[] {
    const { segments } = this.run.memory;
    const segment = this.standing!.segment[place.slot];
    const kind = [segments.isSmall(segment) ? 'small' : 'large', segments.isExpandable(segment) ? 'expandable' : '']
      .filter((word) => word !== '').join(', ');
    return ['free', `in a segment of ${bytes(this.standing!.size[place.slot])} (${kind})`];
  }

  select(block: number | null): void {
    if (!this.isPrimary) return;
    this.focused = block;
    this.app.store.set({ block }, 'jump');
  }

  private onKey(event: KeyboardEvent): boolean {
    const keys = ['ArrowLeft', 'ArrowRight', 'ArrowUp', 'ArrowDown', 'Home', 'End', 'Enter', 'Escape'];
    if (!keys.includes(event.key) || event.altKey || event.ctrlKey || event.metaKey) return false;
    if (event.key === 'Escape') {
      this.app.store.set({ block: null, stack: null, pin: null, cause: null }, 'jump');
      return true;
    }
    const { live, memory: { blocks } } = this.run;
    const order = blocksInOrder(live, blocks);
    if (order.length === 0) return true;
    if (event.key === 'Enter') {
      this.select(this.focused);
      return true;
    }
    const at = this.focused === null ? -1 : order.indexOf(this.focused);
    const far = 20;
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, ArrowUp: at - far, ArrowDown: at + far, Home: 0, End: order.length - 1 }[event.key] ?? at;
    this.focused = order[Math.max(0, Math.min(order.length - 1, to))];
    const line = blockLine(this.app, this.run, this.focused);
    this.say(`Block ${count(order.indexOf(this.focused) + 1)} of ${count(order.length)}: ${line.size} ${line.state}, ${line.label}, ${line.request}, ${line.age}, at ${line.address}`);
    if (this.isPrimary) this.app.store.set({ block: this.focused });
    this.reveal(this.focused);
    return true;
  }
}
