// A run with its columns: the curves first, the blocks and segments when the map is shown.
import { asFloats, asInts, type Numbers } from '../document/columns';
import type { Blobs } from '../document/load';
import type { Run } from '../document/types';
import { BlockTable } from './blocks';
import { lastUpTo } from './search';
import { SegmentTable } from './segments';
import { Series } from './series';

export const kSums = ['requested', 'allocated', 'active', 'reserved', 'stranded', 'private_free'] as const;
export type Sum = (typeof kSums)[number];
export type Axis = 'event' | 'time';

// The accounting of a moment, bytes; null: not known.
export interface MomentParts {
  live: number | null;
  rounding: number | null;
  allocated: number;
  pending: number;
  stranded: number;
  whole_free: number;
  private_free: number;
  reserved: number;
}

export interface Memory {
  blocks: BlockTable;
  segments: SegmentTable;
}

export class RunData {
  readonly event: Int32Array;
  readonly x: Float64Array;
  readonly time: Float64Array | null;
  readonly sums: Partial<Record<Sum, Series>> = {};
  private memory: Promise<Memory> | null = null;
  loaded: Memory | null = null;

  constructor(readonly index: number, readonly run: Run, private readonly blobs: Blobs, columns: Map<string, Numbers>) {
    const column = (name: string): Numbers => {
      const found = columns.get(name);
      if (found === undefined) throw new Error(`run ${run.name} lacks its column ${name}: write the page again`);
      return found;
    };
    this.event = asInts(column('event'));
    this.x = asFloats(column('x'));
    this.time = run.has_time && columns.has('time_us') ? asFloats(column('time_us')) : null;
    for (const sum of kSums) {
      const values = columns.get(sum);
      if (values === undefined) continue;
      this.sums[sum] = new Series(values, (span) => {
        const low = columns.get(`${sum}.min.${span}`);
        const high = columns.get(`${sum}.max.${span}`);
        return low === undefined || high === undefined ? null : { low, high };
      });
    }
  }

  static async load(index: number, run: Run, blobs: Blobs): Promise<RunData> {
    const isMemory = /^(block|segment|extent)\./;
    return new RunData(index, run, blobs, await blobs.columns(run, (name) => !isMemory.test(name)));
  }

  get count(): number {
    return this.event.length;
  }

  // Its blocks and segments, unpacked at the first call; null where the document has none.
  async memoryOf(): Promise<Memory | null> {
    if (!('block.address' in this.run.columns)) return null;
    this.memory ??= this.blobs
      .columns(this.run, (name) => /^(block|segment|extent)\./.test(name))
      .then((columns) => ({ blocks: new BlockTable(columns, this.count), segments: new SegmentTable(columns) }));
    this.loaded = await this.memory;
    return this.loaded;
  }

  places(axis: Axis): Float64Array {
    return axis === 'time' && this.time !== null ? this.time : this.x;
  }

  momentAt(axis: Axis, place: number): number {
    return Math.max(0, lastUpTo(this.places(axis), place));
  }

  momentOfEvent(event: number): number {
    return Math.max(0, lastUpTo(this.event, event));
  }

  value(sum: Sum, moment: number): number | null {
    return this.sums[sum]?.values[moment] ?? null;
  }

  parts(moment: number): MomentParts {
    const at = (sum: Sum): number => this.value(sum, moment) ?? 0;
    const known = this.value('requested', moment);
    const requested = known === null || known < 0 ? null : known; // -1: of some block it is not known
    const [allocated, active, reserved, stranded, privateFree] = [
      at('allocated'), this.sums.active ? at('active') : at('allocated'), at('reserved'), at('stranded'), at('private_free')];
    return {
      live: requested,
      rounding: requested === null ? null : allocated - requested,
      allocated,
      pending: active - allocated,
      stranded,
      private_free: privateFree,
      whole_free: reserved - active - stranded - privateFree,
      reserved,
    };
  }
}
