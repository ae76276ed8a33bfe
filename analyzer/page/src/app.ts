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

  // The moment of another run that stands at the same place of the common axis as the view's.
  momentIn(other: RunData): number {
    const observed = this.observed();
    if (observed === null || other === observed) return this.view.moment;
    return other.momentAt('event', observed.x[this.view.moment]);
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
