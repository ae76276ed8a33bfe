// What all panels share: the document, the runs that are unpacked, the view, and jumps from one place to another.
import type { Blobs } from './document/load';
import type { Input, PageDocument } from './document/types';
import { LiveSet } from './model/live_set';
import type { Memory } from './model/run_data';
import { RunData } from './model/run_data';
import { readTheme, type Theme } from './view/palette';
import type { View } from './view/state';
import { Store } from './view/store';

// A run whose blocks are unpacked, with the set of those in use.
export interface LiveRun {
  data: RunData;
  memory: Memory;
  live: LiveSet;
}

export class App {
  theme: Theme = readTheme();
  private readonly runs = new Map<number, Promise<RunData>>();
  private readonly loaded = new Map<number, RunData>();
  private readonly liveRuns = new Map<number, Promise<LiveRun | null>>();
  private readonly liveLoaded = new Map<number, LiveRun>();

  constructor(readonly doc: PageDocument, readonly blobs: Blobs, readonly store: Store) {}

  get view(): View {
    return this.store.view;
  }

  input(index = this.view.input): Input {
    return this.doc.inputs[Math.min(index, this.doc.inputs.length - 1)];
  }

  observedIndex(index = this.view.input): number | null {
    return this.input(index)?.runs.find((run) => this.doc.runs[run].kind === 'observed') ?? null;
  }

  // The selected input's observed run, once its curves are unpacked.
  observed(): RunData | null {
    const index = this.observedIndex();
    return index === null ? null : (this.loaded.get(index) ?? null);
  }

  run(index: number): RunData | null {
    return this.loaded.get(index) ?? null;
  }

  live(index: number | null): LiveRun | null {
    return index === null ? null : (this.liveLoaded.get(index) ?? null);
  }

  loadRun(index: number): Promise<RunData> {
    let promise = this.runs.get(index);
    if (promise === undefined) {
      promise = RunData.load(index, this.doc.runs[index], this.blobs).then((data) => {
        this.loaded.set(index, data);
        return data;
      });
      this.runs.set(index, promise);
    }
    return promise;
  }

  loadLive(index: number): Promise<LiveRun | null> {
    let promise = this.liveRuns.get(index);
    if (promise === undefined) {
      promise = this.loadRun(index).then(async (data) => {
        const memory = await data.memoryOf();
        if (memory === null) return null;
        const run = { data, memory, live: new LiveSet(memory.blocks, data.count) };
        this.liveLoaded.set(index, run);
        return run;
      });
      this.liveRuns.set(index, promise);
    }
    return promise;
  }

  // The view's moment in the observed run. Beyond its last one the view goes on through what is projected: one event of the
  // common axis a moment.
  get moment(): number {
    const observed = this.observed();
    return observed === null ? 0 : Math.min(this.view.moment, observed.count - 1);
  }

  get beyond(): number {
    const observed = this.observed();
    return observed === null ? 0 : Math.max(0, this.view.moment - (observed.count - 1));
  }

  // The last moment that the view can go to: the observed run's, or that of a what-if that is shown and goes on.
  lastMoment(): number {
    const observed = this.observed();
    if (observed === null) return 0;
    const end = observed.x[observed.count - 1];
    let extra = 0;
    for (const index of [...this.view.overlays, this.view.run]) {
      const run = index === null ? undefined : this.loaded.get(index);
      if (run !== undefined && run.run.kind === 'what_if') extra = Math.max(extra, Math.floor(run.x[run.count - 1] - end));
    }
    return observed.count - 1 + extra;
  }

  // The moment of another run that stands at the same place of the common axis as the view's.
  momentIn(other: RunData): number {
    const observed = this.observed();
    if (observed === null || other === observed) return this.moment;
    return other.momentAt('event', observed.x[this.moment] + this.beyond);
  }

  showInput(index: number): void {
    this.store.set({ ...startOf(this.doc, index), from: null, to: null, block: null, cause: null, pin: null, stack: null, run: null }, 'jump');
  }

  jump(moment: number, part: Partial<View> = {}): void {
    const observed = this.observed();
    if (observed === null) return;
    const at = Math.max(0, Math.min(observed.count - 1, moment));
    const zoom: Partial<View> = {};
    const { from, to, axis } = this.view;
    const place = observed.places(axis)[at];
    if (from !== null && to !== null && (place < from || place > to)) {
      zoom.from = place - (to - from) / 2;
      zoom.to = place + (to - from) / 2;
    }
    this.store.set({ moment: at, ...zoom, ...part }, 'jump');
  }
}

// What a reader sees of a pool's name: private pools are all but "default".
export const isPrivatePool = (data: RunData, pool: number): boolean => (data.run.pools[pool] ?? 'default') !== 'default';

// What an input shows first: the moment of its verdict, and the curve of the setting that is advised.
export function startOf(doc: PageDocument, index: number): Pick<View, 'input' | 'moment' | 'overlays'> {
  const input = doc.inputs[index];
  if (input === undefined) return { input: index, moment: 0, overlays: [] };
  const observed = input.runs.find((run) => doc.runs[run].kind === 'observed');
  const { paste, what_if: rows } = input.explanation;
  const isAdvised = (run: number): boolean => {
    const { kind, what_if_row: row } = doc.runs[run];
    const conf = kind !== 'what_if' || row === null ? '' : (rows[row]?.conf ?? '');
    return conf !== '' && paste !== null && paste.endsWith(`=${conf}`);
  };
  return { input: index, moment: observed === undefined ? 0 : doc.runs[observed].verdict_moment, overlays: input.runs.filter(isAdvised).slice(0, 1) };
}
