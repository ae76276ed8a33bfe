// Makes a page's document of a random program, by an allocator of its own (first fit in segments of 20 MiB or more), with
// the truth of each moment beside it. Seeded: the same arguments make the same document.
import { gzipSync } from 'node:zlib';
import type { Explanation } from '../src/document/answers/explain';
import type { Column, PageDocument, Run } from '../src/document/types';
import { wholeOf } from './part';

export interface MadeBlock {
  address: number;
  size: number;
  requested: number;
  alloc: number;
  freed: number;
  done: number;
  stack: number;
  segment: number;
}

export interface MadeSegment {
  address: number;
  size: number;
  begin: number;
  end: number;
}

export interface Made {
  doc: PageDocument;
  blobs: string[]; // base64
  blocks: MadeBlock[];
  segments: MadeSegment[];
  moments: number;
}

export function random(seed: number): () => number {
  let state = seed >>> 0 || 1;
  return () => {
    state ^= state << 13;
    state >>>= 0;
    state ^= state >>> 17;
    state ^= state << 5;
    state >>>= 0;
    return state / 2 ** 32;
  };
}

const kMiB = 2 ** 20;

// Names that would be markup if they were not text.
export const kHostile = '</script><img src=x onerror="document.title=1">';
const kHolders = ['model.layers.*.weight (parameter)', 'losses[] (graph of 7 nodes)', kHostile];
const kSettings: [string, string][] = [['PYTORCH_CUDA_ALLOC_CONF', kHostile], ['expandable_segments', 'False']];

class Blob1 {
  private readonly parts: Uint8Array[] = [];
  private length = 0;

  constructor(private readonly index: number) {}

  add(values: ArrayLike<number>, type: 'u32' | 'i32' | 'f64', how: Partial<Column> = {}): Column {
    const array = type === 'u32' ? Uint32Array.from(values) : type === 'i32' ? Int32Array.from(values) : Float64Array.from(values);
    const bytes = new Uint8Array(array.buffer);
    const column = { blob: this.index, type, offset: this.length, count: values.length, base: 0, scale: 1, delta: false, ...how };
    const padded = new Uint8Array(Math.ceil(bytes.length / 8) * 8);
    padded.set(bytes);
    this.parts.push(padded);
    this.length += padded.length;
    return column;
  }

  base64(): string {
    return gzipSync(Buffer.concat(this.parts), { level: 1 }).toString('base64');
  }
}

export function makeDocument(events: number, seed = 7, liveWanted = 400): Made {
  const next = random(seed);
  const blocks: MadeBlock[] = [];
  const segments: MadeSegment[] = [];
  const free: { address: number; size: number; segment: number }[] = [];
  const inUse: number[] = [];
  const moments = events + 1;
  const sums = { requested: new Float64Array(moments), allocated: new Float64Array(moments), active: new Float64Array(moments), reserved: new Float64Array(moments), stranded: new Float64Array(moments), private_free: new Float64Array(moments) };
  const pending: number[] = [];
  const usedOf: number[] = [];
  let [allocated, active, reserved, requested, top] = [0, 0, 0, 0, 2 ** 40];
  let stranded = 0;
  const book = (segment: number, bytes: number): void => {
    const { size } = segments[segment];
    stranded -= usedOf[segment] > 0 ? size - usedOf[segment] : 0;
    usedOf[segment] += bytes;
    stranded += usedOf[segment] > 0 ? size - usedOf[segment] : 0;
  };
  const take = (size: number, m: number): { address: number; segment: number } => {
    let place = free.findIndex((hole) => hole.size >= size);
    if (place < 0) {
      const bytes = Math.max(20 * kMiB, size);
      segments.push({ address: top, size: bytes, begin: m, end: moments });
      usedOf.push(0);
      free.push({ address: top, size: bytes, segment: segments.length - 1 });
      top += bytes + 2 * kMiB;
      reserved += bytes;
      place = free.length - 1;
    }
    const hole = free[place];
    const out = { address: hole.address, segment: hole.segment };
    hole.address += size;
    hole.size -= size;
    if (hole.size === 0) free.splice(place, 1);
    return out;
  };
  const giveBack = (block: MadeBlock): void => {
    book(block.segment, -block.size);
    let { address, size } = block;
    for (let i = free.length - 1; i >= 0; --i) {
      const hole = free[i];
      if (hole.segment !== block.segment) continue;
      if (hole.address + hole.size === address || address + size === hole.address) {
        address = Math.min(address, hole.address);
        size += hole.size;
        free.splice(i, 1);
      }
    }
    free.unshift({ address, size, segment: block.segment });
    if (free.length > 4096) free.length = 4096;
  };
  for (let m = 1; m < moments; ++m) {
    const wave = liveWanted * (0.6 + 0.4 * Math.sin((m / Math.max(200, events / 40)) * Math.PI));
    while (pending.length > 0 && next() < 0.3) {
      const block = blocks[pending.shift()!];
      block.done = m;
      active -= block.size;
      giveBack(block);
    }
    if (inUse.length < wave || inUse.length === 0) {
      const want = Math.ceil(2 ** (9 + 12 * next()));
      const size = Math.ceil(want / 512) * 512;
      const { address, segment } = take(size, m);
      blocks.push({ address, size, requested: want, alloc: m, freed: moments, done: moments, stack: Math.floor(next() ** 2 * 24), segment });
      inUse.push(blocks.length - 1);
      book(segment, size);
      allocated += size;
      active += size;
      requested += want;
    } else {
      const i = Math.floor(next() * inUse.length);
      const index = inUse[i];
      const block = blocks[index];
      inUse[i] = inUse[inUse.length - 1];
      inUse.pop();
      block.freed = block.done = m;
      allocated -= block.size;
      requested -= block.requested;
      if (next() < 0.05) {
        block.done = moments;
        pending.push(index);
      } else {
        active -= block.size;
        giveBack(block);
      }
    }
    sums.requested[m] = requested;
    sums.allocated[m] = allocated;
    sums.active[m] = active;
    sums.reserved[m] = reserved;
    sums.stranded[m] = stranded;
  }
  return { ...assemble(blocks, segments, sums, moments), blocks, segments, moments };
}

function assemble(blocks: MadeBlock[], segments: MadeSegment[], sums: Record<string, Float64Array>, moments: number): { doc: PageDocument; blobs: string[] } {
  const small = new Blob1(0);
  const big = new Blob1(1);
  const columns: Record<string, Column> = {
    event: small.add(Array.from({ length: moments }, (_, i) => (i === 0 ? -1 : 1)), 'i32', { delta: true }), // summed up: -1, 0, 1...
    x: small.add(Array.from({ length: moments }, (_, i) => i), 'u32'),
    time_us: small.add(Array.from({ length: moments }, (_, i) => 1e15 + 7 * i), 'f64'),
  };
  for (const [name, values] of Object.entries(sums)) columns[name] = small.add(values, 'f64');
  const of = (get: (block: MadeBlock) => number): number[] => blocks.map(get);
  columns['block.address'] = big.add(of((b) => b.address), 'f64');
  columns['block.size'] = big.add(of((b) => b.size / 512), 'u32', { scale: 512 });
  columns['block.requested'] = big.add(of((b) => b.requested), 'u32');
  columns['block.alloc'] = big.add(of((b) => b.alloc), 'u32');
  columns['block.freed'] = big.add(of((b) => b.freed), 'u32');
  columns['block.done'] = big.add(of((b) => b.done), 'u32');
  columns['block.stack'] = big.add(of((b) => b.stack), 'u32');
  columns['block.holder'] = big.add(of((b) => (b.freed < moments ? 2 ** 32 - 1 : b.stack % kHolders.length)), 'u32');
  columns['block.flags'] = big.add(of(() => 4), 'u32');
  columns['block.alloc_event'] = big.add(of((b) => b.alloc - 1), 'i32');
  columns['segment.extent'] = big.add(Array.from({ length: segments.length + 1 }, (_, i) => i), 'u32');
  columns['segment.end'] = big.add(segments.map((s) => s.end), 'u32');
  columns['extent.moment'] = big.add(segments.map((s) => s.begin), 'u32');
  columns['extent.address'] = big.add(segments.map((s) => s.address), 'f64');
  columns['extent.size'] = big.add(segments.map((s) => s.size), 'f64');
  const peak = (name: string): { moment: number; bytes: number } => {
    let moment = 0;
    for (let m = 1; m < moments; ++m) if (sums[name][m] > sums[name][moment]) moment = m;
    return { moment, bytes: sums[name][moment] };
  };
  const peaks = { allocated: peak('allocated'), active: peak('active'), reserved: peak('reserved') };
  const step = Math.max(2, Math.floor(moments / 10));
  const steps = Array.from({ length: 9 }, (_, i): [number, number] => [i * step, (i + 1) * step]);
  const run: Run = {
    kind: 'observed', input: 0, name: 'as recorded', what_if_row: null, event_count: moments - 1, moment_count: moments, is_thinned: false, left_out: { blocks: 0, share: 0 },
    capacity_bytes: Math.ceil(peaks.reserved.bytes * 1.1), has_time: true, start_time_us: 1e15, verdict_moment: peaks.reserved.moment, peaks,
    failures: [], projected_from: null, steps,
    phases: steps.flatMap(([begin, end]) => {
      const middle = Math.floor((begin + end) / 2);
      return [{ name: 'forward', begin, end: middle }, { name: 'backward', begin: middle, end }];
    }),
    streams: ['0'], pools: ['default'], columns };
  const labels = Array.from({ length: 24 }, (_, i) => `model.py:${10 + 3 * i} layer${i}`);
  const accounting = {
    total_bytes: null, allocated_bytes: null, reserved_bytes: null, live_bytes: null, rounding_bytes: null, pending_bytes: null,
    stranded_bytes: null, whole_free_bytes: null, private_pool_bytes: null, outside_bytes: null, free_bytes: null };
  const doc: PageDocument = {
    format: 'ashlar-page', version: 1, made_by: 'a test', title: 'made', command: 'none', diff: null, estimate: null, dry_run: null, fleet: null, fit: null,
    runs: [run],
    inputs: [{
      name: 'made', rank: null, device: 0, explanation_text: 'made by a test', runs: [0], texts: [], holders: kHolders, settings: kSettings, causes: [], evidence_moments: [],
      stacks: {
        labels, parts: labels.map((label, i) => (i % 3 === 0 ? null : `inner.py:${i} part${i % 3} < ${label}`)), frames: [['train.py', 3, 'main'], ...labels.map((_, i): [string, number, string] => ['/a/model.py', 10 + 3 * i, `layer${i}`])],
        starts: Array.from({ length: 25 }, (_, i) => 2 * i), stack_frames: labels.flatMap((_, i) => [i + 1, 0]) },
      explanation: wholeOf<Explanation>({
        source: 'made', headline: 'HEALTHY  made', verdict: 'healthy', evidence: [], moment: null, accounting, request_bytes: null,
        peak: { allocated_bytes: peaks.allocated.bytes, active_bytes: peaks.active.bytes, reserved_bytes: peaks.reserved.bytes, utilisation: 1 },
        stacks: [], pinned_host: null, failure: null, pins: { lines: [], other_blame_bytes: 0, other_blocks: 0 }, causes: [], program_remedies: [],
        what_if: [], what_if_capacity_bytes: null, paste: null, advice: null, own_allocator: null, elsewhere: null, next_step: null, next_lines: [], notes: [],
        actions: [{ proof: 'replayed', what: null, lines: ['export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True'], gain: 'peak 2.00 GiB -> 1.00 GiB' }] }) }],
  };
  return { doc, blobs: [small.base64(), big.base64()] };
}

// The page with the document in it, as the program writes it.
export function pageWith(bundle: string, made: { doc: PageDocument; blobs: string[] }): string {
  const json = JSON.stringify(made.doc).replaceAll('<', '\\u003c');
  const scripts = [`<script type="application/json" id="ashlar-document">${json}</script>`,
    ...made.blobs.map((blob, i) => `<script type="application/octet-stream" id="ashlar-blob-${i}">${blob}</script>`)];
  return bundle.replace('<!--ashlar:title-->', () => made.doc.title).replace('<!--ashlar:document-->', () => scripts.join('\n'));
}
