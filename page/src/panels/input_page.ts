// All panels of one input, and which of them follow which change of the view.
import type { App, LiveRun } from '../app';
import { isForetold } from '../model/inputs';
import type { View } from '../view/state';
import { h, panel, reveal, type Child } from '../view/dom';
import { Slices } from '../view/slices';
import { Bands } from './bands';
import { BlockLife } from './block_life';
import { Causes } from './causes';
import { Curves } from './curves';
import type { Curve } from './curve';
import { Events } from './events';
import { Holders } from './holders';
import { Maps } from './maps';
import { Moment } from './moment';
import { Pins, strandedText } from './pins';
import { pinnedHostPanel } from './pinned_host';
import { settingsPanel } from './settings';
import { Transport } from './transport';
import { verdictPanel } from './verdict';
import { WhatIfs } from './what_ifs';

interface Instrument {
  curves: Curves;
  transport: Transport;
  moment: Moment;
}

interface Memory {
  run: LiveRun;
  bands: Bands;
  maps: Maps;
  life: BlockLife;
  holders: Holders;
  pins: Pins;
  events: Events;
}

export class InputPage {
  readonly element = h('div', { class: 'input-page' });
  private instrument: Instrument | null = null;
  private memory: Memory | null = null;
  private readonly causes: Causes;
  private readonly whatIfs: WhatIfs;
  private readonly hostCurves: Curve[] = [];
  private readonly slices = new Slices();

  constructor(private readonly app: App, readonly index: number) {
    const input = app.input(index);
    this.causes = new Causes(app);
    this.whatIfs = new WhatIfs(app);
    const stage = h('div', { class: 'stage' });
    const side = h('div', { class: 'side' });
    const lower = h('div', { class: 'lower' });
    const notes: Child = input.explanation.notes.length === 0 ? null
      : panel('Notes', { id: 'notes' }, h('ul', {}, ...input.explanation.notes.map((note) => h('li', {}, note.message))));
    this.element.append(verdictPanel(input.explanation, input.explanation_text, isForetold(app.doc)));
    const observed = app.observedIndex(index);
    this.element.append(this.causes.element);
    if (observed !== null) this.element.append(h('div', { class: 'work' }, stage, side));
    this.element.append(this.whatIfs.element, lower);
    const host = pinnedHostPanel(app, index, (curve) => { this.hostCurves.push(curve); curve.fit(); curve.redraw(); });
    if (host !== null) this.element.append(host);
    const settings = settingsPanel(input);
    if (settings !== null) this.element.append(settings);
    if (notes) this.element.append(notes);
    this.causes.draw();
    this.whatIfs.draw();
    document.documentElement.dataset.ready = observed === null ? 'all' : 'verdict';
    if (observed !== null) void this.fill(observed, stage, side, lower);
  }

  private async fill(observed: number, stage: HTMLElement, side: HTMLElement, lower: HTMLElement): Promise<void> {
    const { app } = this;
    const data = await app.loadRun(observed);
    const curves = new Curves(app, data, this.index);
    const transport = new Transport(app);
    const moment = new Moment(app, data);
    stage.append(h('section', { class: 'panel', 'aria-label': 'Memory over time' }, curves.element, transport.element, moment.status));
    side.append(moment.element);
    this.instrument = { curves, transport, moment };
    await this.loadOverlays();
    if (app.view.moment > app.lastMoment()) app.store.set({ moment: app.lastMoment() }, 'silent');
    curves.draw();
    curves.drawOverlays();
    transport.draw();
    moment.draw(null);
    document.documentElement.dataset.ready = 'curves';
    performance.mark('ashlar-curves');
    const run = await app.loadLive(observed);
    if (run === null) {
      stage.append(h('p', { class: 'panel faint' }, 'This input tells of no blocks: there is no map.'));
      document.documentElement.dataset.ready = 'all';
      return;
    }
    const maps = new Maps(app, run);
    const memory: Memory = {
      run, maps, bands: new Bands(app, run, maps.labels, () => this.paintBands()), life: new BlockLife(app, run), holders: new Holders(app, run, maps.main),
      pins: new Pins(app, run), events: new Events(app, run) };
    if (data.count > 1) stage.append(memory.bands.element);
    stage.append(h('section', { class: 'panel', 'aria-label': 'Segment map' }, memory.maps.element));
    if (data.count > 1) stage.append(memory.events.element);
    moment.element.after(memory.life.element);
    lower.append(memory.holders.element, memory.pins.element);
    this.memory = memory;
    run.live.moveTo(data.run.verdict_moment);
    const stranded = this.element.querySelector('.verdict-bytes [data-part="stranded"] .remark');
    if (stranded !== null) stranded.textContent = strandedText(run) || stranded.textContent;
    memory.maps.drawLegend();
    memory.maps.draw();
    memory.bands.drawLegend();
    memory.bands.curve.fit();
    memory.bands.curve.redraw();
    void memory.maps.drawOther();
    document.documentElement.dataset.ready = 'map';
    performance.mark('ashlar-map');
    this.onRest(new Set<keyof View>(['moment', 'block', 'pins', 'stack']));
    this.slices.go(() => {
      document.documentElement.dataset.ready = 'all';
      performance.mark('ashlar-all');
      this.warm(4);
    });
  }

  // Draws again what is drawn already, while nothing else happens, so that the first move finds compiled code.
  private warm(times: number): void {
    const again = (): void => {
      this.instrument?.curves.curve.redraw();
      this.memory?.maps.main.draw();
      if (times > 1) this.warm(times - 1);
    };
    if ('requestIdleCallback' in window) requestIdleCallback(again);
  }

  private async loadOverlays(): Promise<void> {
    const { overlays } = this.app.view;
    await Promise.all(overlays.filter((index) => this.app.doc.runs[index] !== undefined).map((index) => this.app.loadRun(index)));
  }

  // Once a frame: the curves if what they show changed, the map and the figures of the moment.
  onFrame(changed: Set<keyof View>): void {
    const any = (...keys: (keyof View)[]): boolean => keys.some((key) => changed.has(key));
    this.slices.delay();
    if (this.instrument === null) return;
    const { curves, transport } = this.instrument;
    if (any('from', 'to', 'axis', 'theme')) {
      if (any('axis', 'theme')) curves.draw();
      else curves.drawWindow();
      for (const curve of this.hostCurves) curve.redrawInSight();
    }
    if (any('moment')) {
      curves.drawMoment();
      transport.draw();
      for (const curve of this.hostCurves) curve.moveMarker();
    }
    if (any('overlays')) void this.loadOverlays().then(() => { curves.draw(); curves.drawOverlays(); transport.draw(); });
    const { memory } = this;
    if (memory === null) return;
    if (any('from', 'to', 'axis', 'theme', 'overlays')) memory.bands.curve.redrawInSight();
    if (any('moment')) memory.bands.curve.moveMarker();
    if (any('theme', 'bands')) memory.bands.forgetColours();
    if (any('theme', 'colour')) memory.maps.forgetColours();
    if (any('colour', 'layout', 'order', 'pools', 'block', 'cause', 'stack', 'pin', 'pins', 'theme')) memory.maps.draw();
    else if (any('moment')) memory.maps.drawMoment();
    if (any('run')) void memory.maps.drawOther();
  }

  // When the view has come to rest: tables, texts, what is dear. What lies lower on the page waits, a table at a time.
  onRest(changed: Set<keyof View>): void {
    const any = (...keys: (keyof View)[]): boolean => keys.some((key) => changed.has(key));
    if (any('cause')) this.causes.draw();
    if (any('overlays', 'run', 'theme')) this.whatIfs.draw();
    const { memory } = this;
    for (const curve of [this.instrument?.curves.curve, ...this.hostCurves, memory?.bands.curve]) curve?.redrawStale();
    if (this.instrument !== null && any('moment', 'theme')) this.instrument.moment.draw(memory?.run ?? null);
    if (memory === null) return;
    if (any('bands', 'theme')) memory.bands.drawLegend();
    if (any('bands', 'block', 'stack', 'group', 'pin', 'cause', 'pools')) this.paintBands();
    if (any('colour', 'theme', 'pins')) memory.maps.drawLegend();
    if (any('moment', 'pins', 'run', 'order')) memory.maps.drawAtRest();
    if (any('block') && this.app.view.block !== null) memory.maps.main.reveal(this.app.view.block);
    if (any('block', 'moment', 'theme')) this.slices.add('life', () => memory.life.draw());
    if (any('moment', 'stack', 'group', 'theme', 'search')) {
      this.slices.add('holders', () => memory.holders.draw());
      this.slices.add('flames', () => memory.holders.drawFlames());
    }
    if (any('moment')) this.slices.add('events', () => memory.events.draw());
    if (any('moment', 'pin')) this.slices.add('pins', () => memory.pins.draw());
    this.slices.go();
  }

  // When nothing else happens, and as often as it takes.
  private paintBands(): void {
    this.slices.add('bands', () => { if (this.memory?.bands.drawSome() === false) this.paintBands(); });
    this.slices.go();
  }

  // What a click was about comes into sight: the block, else the map with its marks, else the moment.
  reveal(changed: Set<keyof View>): void {
    const { view } = this.app;
    const isSet = (...keys: (keyof View)[]): boolean => keys.some((key) => changed.has(key) && view[key] !== null);
    const { instrument, memory } = this;
    if (memory !== null && isSet('block')) this.slices.add('reveal', () => reveal(memory.life.element));
    else if (memory !== null && isSet('cause', 'pin', 'stack', 'run')) reveal(memory.maps.element);
    else if (instrument !== null && isSet('moment')) reveal(instrument.curves.element);
    this.slices.go();
  }

  finish(): void {
    this.memory?.bands.drawSome(true);
    this.slices.finish();
  }

  leave(): void {
    this.slices.forget();
  }
}
