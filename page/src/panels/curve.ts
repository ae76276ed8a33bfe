// Memory over time of one input: its observed run, and the what-ifs laid over it. uPlot draws the axes and keeps the scales;
// the curves are painted from levels of detail.
import uPlot from 'uplot';
import { startOf, type App } from '../app';
import { cost } from '../model/cost';
import type { RunData, Sum } from '../model/run_data';
import { byteTicks, bytes, count, duration, shortBytes } from '../view/format';
import { h, write } from '../view/dom';
import { Tip } from '../view/tip';
import { css, kCategories, type Rgb, type Theme } from '../view/palette';
import { attachInput, clampWindow, onCurveKey, type Target, type Window1 } from './curve_input';
import { capacityTop, paintCapacity, paintFailure, paintMarks, paintProjected, paintStepNumbers, type Frame } from './curve_paint';
import { CurvePixels, type Line } from './curve_pixels';

export const kLines: { sum: Sum; name: string; key: keyof Theme; fill: number; dash: boolean; thick: number }[] = [
  { sum: 'reserved', name: 'reserved', key: 'reserved', fill: 0.12, dash: false, thick: 1.5 },
  { sum: 'active', name: 'active', key: 'pending', fill: 0, dash: true, thick: 1.5 },
  { sum: 'allocated', name: 'allocated', key: 'live', fill: 0.28, dash: false, thick: 1.5 },
  { sum: 'stranded', name: 'stranded', key: 'stranded', fill: 0, dash: false, thick: 1.5 },
];

// What a plot shows in place of lines.
export interface CurveLayer {
  readonly most: number; // bytes at the top
  paint(frame: Frame): void;
  tip(place: number, bytes: number): string[]; // what lies there; empty: nothing
  choose(place: number, bytes: number): { moment: number; block: number | null } | null; // what a click there is about
}

export interface CurveLook {
  height: number;
  label?: string; // "Memory over time" without
  phaseColour?: (name: string) => Rgb;
  isSmall?: boolean; // beside others: fewer lines, no words
  layer?: CurveLayer;
}

const kSeen = 0.25; // the part of a plot from which on it is in sight

export const overlayColour = (row: number): Rgb => kCategories[(row + 2) % kCategories.length];

export class Curve {
  readonly element: HTMLElement;
  readonly plot: uPlot;
  private readonly marker = h('div', { class: 'moment-line', 'aria-hidden': 'true' });
  private readonly capacity = h('div', { class: 'capacity-name', 'aria-hidden': 'true' });
  private readonly target: Target;
  private hidden = new Set<Sum>();
  private readonly pixels = new CurvePixels();
  private markerTransform = '';
  private readonly tip: Tip;
  private pointed: PointerEvent | null = null;
  private isInSight = true;
  private isStale = false; // what is drawn is not the view's

  constructor(
    private readonly app: App, private readonly data: RunData, private readonly input: number, private readonly look: CurveLook) {
    this.element = h('div', {
      class: 'curve', tabindex: 0, role: 'application', 'aria-label': `${look.label ?? 'Memory over time'} of ${app.input(input).name}`,
      'aria-roledescription': 'curve', 'aria-describedby': 'curve-keys' });
    this.plot = new uPlot(this.options(), [[0, 1], [null, null]], this.element);
    this.plot.over.append(this.marker, this.capacity);
    this.tip = new Tip(this.element);
    this.element.append(this.tip.element);
    this.plot.root.querySelector('canvas')?.setAttribute('aria-hidden', 'true');
    this.target = {
      whole: () => this.whole(),
      shown: () => this.shown(),
      show: (window) => this.show(window),
      point: (event) => this.point(event),
      choose: (place, how, clientY) => {
        const { axis } = this.app.view;
        const chosen = clientY === undefined ? null : (this.look.layer?.choose(place, this.bytesAt(clientY)) ?? null);
        if (chosen !== null) {
          this.app.store.set(chosen, how);
          return;
        }
        const last = this.data.x[this.data.count - 1];
        this.moveTo(this.data.momentAt(axis, place) + (axis === 'event' && place > last ? Math.round(place - last) : 0), how);
      },
      step: (moments) => this.moveTo(this.momentOfView() + this.app.beyond + moments, 'move'),
      mark: (left, width) => this.plot.setSelect({ left, top: 0, width, height: this.plot.over.clientHeight }, false),
    };
    attachInput(this.plot.over, this.target);
    this.element.addEventListener('keydown', (event) => {
      if (onCurveKey(event, this.target, () => this.data.places(this.app.view.axis)[this.momentOfView()])) event.preventDefault();
    });
    new ResizeObserver(() => this.fit()).observe(this.element);
    new IntersectionObserver((seen) => {
      this.isInSight = seen[seen.length - 1].intersectionRatio >= kSeen;
      if (this.isInSight) this.redrawStale();
    }, { threshold: kSeen }).observe(this.element);
  }

  // All of the axis: the longest of the input's runs.
  whole(): Window1 {
    const { axis } = this.app.view;
    const places = this.data.places(axis);
    let to = places[places.length - 1];
    if (axis === 'event')
      for (const run of this.shownOverlays()) to = Math.max(to, run.x[run.count - 1]);
    return { from: Math.min(places[0], axis === 'event' ? 0 : places[0]), to: Math.max(to, places[0] + 1) };
  }

  shown(): Window1 {
    const { from, to } = this.app.view;
    return from === null || to === null ? this.whole() : clampWindow({ from, to }, this.whole());
  }

  toggle(sum: Sum, isShown: boolean): void {
    if (isShown) this.hidden.delete(sum);
    else this.hidden.add(sum);
    this.redraw();
  }

  // In a frame: what is out of sight but for an edge waits until it comes into sight, or the view rests.
  redrawInSight(): void {
    if (this.isInSight) this.redraw();
    else this.isStale = true;
  }

  redrawStale(): void {
    if (this.isStale) this.redraw();
  }

  redraw(): void {
    this.isStale = false;
    const { from, to } = this.shown();
    this.plot.batch(() => {
      this.plot.setScale('y', { min: 0, max: this.most() });
      this.plot.setScale('x', { min: from, max: to });
    });
    this.moveMarker();
  }

  // A note of what lies under the pointer, once a frame.
  private point(event: PointerEvent | null): void {
    if (event === null) this.tip.hide();
    else if (this.pointed === null) requestAnimationFrame(() => this.showTip());
    this.pointed = event;
  }

  private showTip(): void {
    const event = this.pointed;
    this.pointed = null;
    if (event === null) return;
    const box = this.plot.over.getBoundingClientRect();
    const { from, to } = this.shown();
    const place = from + ((event.clientX - box.left) / box.width) * (to - from);
    const lines = this.look.layer?.tip(place, this.bytesAt(event.clientY)) ?? this.valuesAt(place);
    if (lines.length === 0) this.tip.hide();
    else this.tip.show(lines, event.clientX, event.clientY);
  }

  private bytesAt(clientY: number): number {
    const box = this.plot.over.getBoundingClientRect();
    return (1 - (clientY - box.top) / box.height) * this.most();
  }

  // The lines' values at a place of the axis.
  private valuesAt(place: number): string[] {
    const { axis } = this.app.view;
    const moment = this.data.momentAt(axis, place);
    const event = this.data.event[moment];
    const { time } = this.data;
    const when = event < 0 ? 'before the first event' : `event ${count(event)}`;
    const rows = kLines.filter((line) => this.data.sums[line.sum] !== undefined && !this.hidden.has(line.sum))
      .map((line) => `${line.name} ${bytes(this.data.value(line.sum, moment) ?? 0)}`);
    const others = this.shownOverlays().map((run) => `reserved under ${run.run.name || 'default'} ${bytes(run.value('reserved', run.momentAt(axis, place)) ?? 0)}`);
    return [time === null ? when : `${when}, ${duration(Math.max(0, time[moment] - time[0]))}`, ...rows, ...others];
  }

  moveMarker(): void {
    const { from, to } = this.shown();
    const { axis } = this.app.view;
    const beyond = axis === 'event' && this.input === this.app.view.input ? this.app.beyond : 0;
    const place = this.data.places(axis)[this.momentOfView()] + beyond;
    const share = (place - from) / (to - from);
    const isOut = share < 0 || share > 1;
    const transform = `translateX(${share * 100}%)`; // of the plot's width, whatever that becomes on paper
    if (this.marker.hidden !== isOut) this.marker.hidden = isOut;
    if (!isOut && transform !== this.markerTransform) this.marker.style.transform = this.markerTransform = transform;
  }

  fit(): void {
    const width = this.element.clientWidth;
    if (width > 0 && width !== this.plot.width) {
      this.plot.setSize({ width, height: this.look.height });
      this.moveMarker();
    }
  }

  // Over the moment's line, so that this passes behind the words.
  private nameCapacity(frame: Frame, capacity: number, top: number | null): void {
    if (this.look.isSmall === true) return;
    const text = `capacity ${bytes(capacity)}${top === null ? ' ↑' : ''}`;
    write(this.capacity, text);
    const { ctx, ratio } = frame;
    ctx.font = `${11 * ratio}px system-ui, sans-serif`;
    frame.taken.push({ left: frame.left + 5 * ratio, top: frame.top + ((top ?? 0) + 3) * ratio, width: ctx.measureText(text).width + 8 * ratio, height: 16 * ratio });
    const at = `${(top ?? 0) + 3}px`;
    if (this.capacity.style.top !== at) this.capacity.style.top = at;
  }

  private momentOfView(): number {
    if (this.input === this.app.view.input && this.data === this.app.observed()) return this.app.moment;
    const observed = this.app.observed();
    if (observed === null) return 0;
    const { axis } = this.app.view;
    return this.data.momentAt(axis, observed.places(axis)[this.app.moment]);
  }

  private moveTo(moment: number, how: 'move' | 'jump'): void {
    if (this.input !== this.app.view.input) {
      this.app.store.set({ ...startOf(this.app.doc, this.input), moment: Math.min(moment, this.data.count - 1), block: null, cause: null, pin: null, stack: null, run: null }, 'jump');
      return;
    }
    this.app.store.set({ moment: Math.max(0, Math.min(this.app.lastMoment(), moment)) }, how);
  }

  private show(window: Window1): void {
    const whole = this.whole();
    const isAll = window.from <= whole.from && window.to >= whole.to;
    this.app.store.set(isAll ? { from: null, to: null } : { from: window.from, to: window.to });
  }

  private shownOverlays(): RunData[] {
    if (this.input !== this.app.view.input) return [];
    return this.app.view.overlays.flatMap((index) => this.app.run(index) ?? []);
  }

  // Bytes at the top: what was reserved at most, and the failed request; the capacity where it is not far above.
  private most(): number {
    if (this.look.layer !== undefined) return Math.max(1, this.look.layer.most * 1.04);
    const { run } = this.data;
    let most = run.peaks.reserved.bytes;
    for (const overlay of this.shownOverlays()) most = Math.max(most, overlay.run.peaks.reserved.bytes);
    const request = this.app.input(this.input).explanation.failure?.segment_bytes;
    if (request !== undefined && run.failures.length > 0)
      most = Math.max(most, (this.data.value('reserved', run.failures[run.failures.length - 1]) ?? 0) + request);
    if (run.capacity_bytes !== null && run.capacity_bytes < 1.6 * most) most = Math.max(most, run.capacity_bytes);
    return Math.max(1, most * 1.04);
  }

  private options(): uPlot.Options {
    const stroke = (): string => css(this.app.theme.faint);
    const grid = { stroke: () => css(this.app.theme.grid), width: 1 };
    const font = '11px system-ui, sans-serif';
    return {
      width: 600, height: this.look.height, padding: [this.look.isSmall ? 6 : 14, 26, 0, 0], legend: { show: false },
      scales: { x: { time: false, auto: false, range: (_u, min, max) => [min, max] }, y: { auto: false, range: (_u, min, max) => [min, max] } },
      series: [{}, { show: true, paths: () => null, points: { show: false } }],
      cursor: {
        y: false, points: { show: false }, drag: { x: false, y: false, setScale: false }, sync: { key: 'ashlar', setSeries: false } },
      axes: [
        {
          stroke, grid, font, ticks: { show: false }, size: 24, space: 90,
          splits: (_u, _axis, from, to, step) => this.placeTicks(from, to, step),
          values: (_u, splits) => splits.map((at) => this.placeText(at)),
        },
        {
          stroke, grid, font, ticks: { show: false }, size: 70,
          splits: (u) => byteTicks(u.scales.y!.max ?? 1, this.look.isSmall ? 3 : 6),
          values: (_u, splits) => splits.map(shortBytes),
        },
      ],
      hooks: { drawAxes: [(u) => this.paint(u)] },
    };
  }

  // Round places: of events, or of times since the first one.
  private placeTicks(from: number, to: number, step: number): number[] {
    const base = this.app.view.axis === 'event' ? 0 : (this.data.time?.[0] ?? 0);
    const out: number[] = [];
    if (!(step > 0)) return out;
    const first = base + Math.ceil((from - base) / step) * step;
    for (let i = 0; i < 100 && first + i * step <= to; ++i) out.push(first + i * step); // 100: the scale may be another axis's
    return out;
  }

  placeText(place: number): string {
    if (this.app.view.axis === 'event') return Number.isInteger(place) ? count(place) : '';
    return duration(Math.max(0, place - (this.data.time?.[0] ?? 0)));
  }

  private paint(u: uPlot): void {
    const { min, max } = u.scales.x!;
    if (min == null || max == null || max <= min) return;
    const { theme } = this.app;
    const frame: Frame = {
      ctx: u.ctx, left: Math.round(u.bbox.left), top: Math.round(u.bbox.top), width: Math.round(u.bbox.width),
      height: Math.round(u.bbox.height), from: min, to: max, most: u.scales.y!.max ?? 1, ratio: devicePixelRatio,
      axis: this.app.view.axis, theme, taken: [] };
    u.ctx.save();
    paintMarks(frame, this.data, this.look.phaseColour ?? null);
    u.ctx.beginPath();
    u.ctx.rect(frame.left, 0, frame.width, frame.top + frame.height);
    u.ctx.clip();
    if (this.look.layer === undefined) this.paintLines(frame);
    else this.look.layer.paint(frame);
    if (this.look.isSmall !== true) paintStepNumbers(frame, this.data);
    u.ctx.restore();
  }

  private paintLines(frame: Frame): void {
    ++cost.curves;
    const { run } = this.data;
    const { theme } = this.app;
    const { explanation } = this.app.input(this.input);
    const isSmall = this.look.isSmall === true;
    if (run.capacity_bytes !== null) this.nameCapacity(frame, run.capacity_bytes, capacityTop(frame, run.capacity_bytes));
    paintProjected(frame, this.data);
    for (const overlay of this.shownOverlays()) paintProjected(frame, overlay);
    const lines: Line[] = kLines.filter((line) => !this.hidden.has(line.sum) && (!isSmall || line.sum !== 'active'))
      .map(({ sum, key, fill, dash, thick }) => ({ sum, colour: theme[key], fill, dash, thick }));
    this.pixels.begin(frame);
    this.pixels.add(frame, this.data, lines);
    for (const overlay of this.shownOverlays())
      this.pixels.add(frame, overlay, [
        { sum: 'reserved', colour: overlayColour(overlay.run.what_if_row ?? 0), fill: 0, dash: false, thick: 2 }]);
    this.pixels.end(frame);
    if (run.capacity_bytes !== null) paintCapacity(frame, run.capacity_bytes);
    const places = this.data.places(frame.axis);
    run.failures.forEach((moment, i) => {
      const isLast = i === run.failures.length - 1;
      const request = isLast ? (explanation.failure?.request_bytes ?? 0) : 0;
      paintFailure(frame, places[moment], this.data.value('reserved', moment) ?? 0, request,
        isLast && request > 0 && !isSmall ? `${bytes(request)} requested` : '');
    });
  }
}
