// The model against slow and plain counts over a random program: curves, live sets, segments, holes, holders.
import { describe, expect, it } from 'vitest';
import { Blobs } from '../../src/document/load';
import { BlockBands, nthLargest } from '../../src/model/block_bands';
import { columnBounds, columnRanges } from '../../src/model/columns_of_pixels';
import { EventList, parseSearch } from '../../src/model/event_list';
import { findHoles } from '../../src/model/holes';
import { frameTree, groupLabel, sumHolders, sumInParts } from '../../src/model/holders';
import { leftOutBytes } from '../../src/model/left_out';
import { LiveSet } from '../../src/model/live_set';
import { hit, holesFirst, layOut } from '../../src/model/map_layout';
import { RunData } from '../../src/model/run_data';
import { slotOf } from '../../src/model/segments';
import { whereItWent } from '../../src/model/accounting';
import { cost } from '../../src/model/cost';
import { Series } from '../../src/model/series';
import { bytes } from '../../src/view/format';
import { makeDocument, random } from '../made_document';

async function made(events: number, seed: number) {
  const { doc, blobs, blocks, segments, moments } = makeDocument(events, seed);
  const data = await RunData.load(0, doc.runs[0], new Blobs((blob) => blobs[blob]));
  const memory = (await data.memoryOf())!;
  return { doc, data, memory, live: new LiveSet(memory.blocks, data.count), blocks, segments, moments };
}

const inUse = (blocks: { alloc: number; done: number }[], m: number): number[] =>
  blocks.flatMap((block, i) => (block.alloc <= m && m < block.done ? [i] : []));

describe('live set', () => {
  it('holds the blocks in use wherever it goes, near and far', async () => {
    const { live, blocks, moments } = await made(40000, 3);
    const next = random(5);
    let m = 0;
    for (let i = 0; i < 60; ++i) {
      m = next() < 0.3 ? Math.floor(next() * moments) : Math.max(0, Math.min(moments - 1, m + Math.floor((next() - 0.5) * 300)));
      live.moveTo(m);
      expect([...live.list.slice(0, live.count)].sort((a, b) => a - b)).toEqual(inUse(blocks, m));
    }
  });
});

describe('accounting', () => {
  it('sums to what is reserved, and stranded bytes are the holes of segments in use', async () => {
    const { data, memory, live, blocks, segments, moments } = await made(6000, 9);
    for (const m of [0, 1, 500, 3100, moments - 1]) {
      live.moveTo(m);
      const standing = memory.segments.at(m);
      const used = new Map<number, number>();
      for (const i of inUse(blocks, m)) used.set(blocks[i].segment, (used.get(blocks[i].segment) ?? 0) + blocks[i].size);
      const stranded = [...used].reduce((sum, [segment, bytes]) => sum + segments[segment].size - bytes, 0);
      expect(findHoles(live, memory.blocks, memory.segments, standing, () => false).stranded).toBe(stranded);
      const parts = data.parts(m);
      expect(parts.stranded).toBe(stranded);
      expect(parts.live! + parts.rounding! + parts.pending + parts.stranded + parts.whole_free + parts.private_free).toBe(parts.reserved);
      expect(parts.reserved).toBe(segments.filter((s) => s.begin <= m && m < s.end).reduce((sum, s) => sum + s.size, 0));
    }
  });

  it('says whose the memory outside of the allocator is', () => {
    const accounting = { total_bytes: 100, reserved_bytes: 60, live_bytes: 60, outside_bytes: 30, free_bytes: 10 };
    const owners = [{ owner: "PyTorch's allocator", bytes: 60 }, { owner: 'NCCL', bytes: 20 }];
    const remarkOf = (by_library: unknown) =>
      whereItWent({ accounting, by_library } as never)!.rows.find((row) => row.kind === 'outside')!.remark;
    expect(remarkOf(null)).toBe('CUDA context, other libraries and processes');
    expect(remarkOf({ owners })).toBe('NCCL 20 B, CUDA context, other processes');
  });

  it('charges a hole between two blocks inversely to their sizes', () => {
    const table = {
      address: [100, 130], size: [10, 30], count: 2, alloc: new Int32Array(2), freed: Int32Array.of(9, 9), done: Int32Array.of(9, 9) };
    const live = { list: Uint32Array.of(1, 0), count: 2, moment: 0 };
    const standing = { from: 0, to: 9, segment: Int32Array.of(0), address: Float64Array.of(90), size: Float64Array.of(80) };
    const holes = findHoles(live as never, table as never, { pool: [0] } as never, standing, () => false);
    // 90..100 is the lower block's; 110..130 is 15 : 5; 160..170 is the upper block's.
    expect([...holes.blame]).toEqual([25, 15]);
    expect(holes.stranded).toBe(40);
  });
});

describe('holders', () => {
  it('sum live bytes by line, and the tree has the same bytes at its root and its leaves', async () => {
    const { doc, data, memory, live, blocks, moments } = await made(5000, 11);
    for (const m of [700, 4000, moments - 1]) {
      live.moveTo(m);
      const truth = new Map<string, number>();
      let all = 0;
      for (const block of blocks)
        if (block.alloc <= m && m < block.freed) {
          const label = doc.inputs[0].stacks.labels[block.stack];
          truth.set(label, (truth.get(label) ?? 0) + block.size);
          all += block.size;
        }
      const rows = sumHolders(live, memory.blocks, groupLabel(memory.blocks, data, doc.inputs[0], 'line', () => null));
      expect(new Map(rows.map((row) => [row.label, row.bytes]))).toEqual(truth);
      const tree = frameTree(live, memory.blocks, doc.inputs[0]);
      expect(tree.bytes).toBe(all);
      const main = tree.children.get('train.py:3 main')!;
      expect([...main.children.values()].reduce((sum, child) => sum + child.bytes, 0)).toBe(all);
    }
  });
});

describe('a line that holds more than half', () => {
  const size = [600, 300, 100, 700, 200];
  const blocks = { stack: Int32Array.of(0, 1, 2, 3, -1), size, count: 5, isPending: () => false };
  const labels = ['train.py:9 main', 'train.py:9 main', 'train.py:9 main', 'data.py:3 load'];
  const parts = ['attention.py:4 forward < train.py:9 main', 'adam.py:7 step < train.py:9 main', null, 'read.py:1 read < data.py:3 load'];
  const input = { stacks: { labels, parts } };
  const label = (block: number): string => (block === 4 ? 'no stack recorded' : labels[block]);
  const rowsOf = (by: 'line' | 'size', list: number[]): [string, number][] =>
    sumInParts({ list, count: list.length, moment: 0 } as never, blocks as never, input as never, by, label).map((row) => [row.label, row.bytes]);

  it('is told in parts, and the other lines are not', () => {
    expect(rowsOf('line', [0, 1, 2, 3])).toEqual([
      ['data.py:3 load', 700], [parts[0], 600], [parts[1], 300], ['train.py:9 main', 100]]);
  });
  it('is one row with half or less, and in other groups', () => {
    expect(rowsOf('line', [0, 2, 3])).toEqual([['data.py:3 load', 700], ['train.py:9 main', 700]]);
    expect(rowsOf('line', [1, 2, 4, 3])).toEqual([[parts[3], 700], ['train.py:9 main', 400], ['no stack recorded', 200]]);
    expect(rowsOf('size', [0, 1, 2, 3])).toEqual([['train.py:9 main', 1000], ['data.py:3 load', 700]]);
  });
});

describe('blocks over time', () => {
  it('are the live blocks in their order, the largest by bytes x time one by one and the others as a sum', async () => {
    const { data, memory, blocks, moments } = await made(8000, 13);
    const weight = (block: { alloc: number; freed: number; size: number }): number =>
      block.size * Math.max(1, Math.min(block.freed, moments - 1) - block.alloc);
    const most = 900;
    const largest = new Set(blocks.map((block, i) => ({ i, weight: weight(block) })).sort((a, b) => b.weight - a.weight || a.i - b.i).slice(0, most).map(({ i }) => i));
    const bands = new BlockBands(memory.blocks, data.x, null, most);
    expect(bands.drawn).toBe(most);
    const isShown = (block: number): boolean => block % 7 !== 3;
    bands.show(isShown);
    const next = random(19);
    let m = 0;
    bands.begin(m);
    for (let i = 0; i < 120; ++i) {
      if (next() < 0.1) bands.begin(m = Math.floor(next() * moments));
      else bands.forward(m = Math.min(moments - 1, m + Math.floor(next() ** 3 * 400)));
      const live = blocks.flatMap((block, k) => (block.alloc <= m && m < block.freed && isShown(k) ? [k] : []));
      const stack: number[] = [];
      for (let block = bands.first; block >= 0; block = bands.next[block]) stack.push(block);
      expect(stack).toEqual(live.filter((k) => largest.has(k)));
      const rest = live.filter((k) => !largest.has(k)).reduce((sum, k) => sum + blocks[k].size, 0);
      expect(bands.others).toBe(rest);
      const height = stack.reduce((sum, k) => sum + blocks[k].size, 0);
      expect(bands.at(height + rest)).toBe(null);
      if (rest > 0) expect(bands.at(height)).toBe('others');
      if (stack.length > 0) expect([bands.at(0), bands.at(height - 1)]).toEqual([stack[0], stack[stack.length - 1]]);
    }
    const all = blocks.reduce((sum, block) => sum + weight(block), 0);
    const others = blocks.reduce((sum, block, k) => sum + (largest.has(k) ? 0 : weight(block)), 0);
    expect(bands.shareOfOthers).toBeCloseTo(others / all, 9);
  });

  it('count what is allocated and in no block of the page', async () => {
    const { doc, memory, blocks, moments } = await made(3000, 17);
    const allocated = Float64Array.from({ length: moments }, (_, m) =>
      blocks.reduce((sum, block) => sum + (block.alloc <= m && m < block.freed ? block.size : 0), 0));
    expect(leftOutBytes(doc.runs[0], allocated, memory.blocks)).toBe(null);
    const [run] = doc.runs;
    const missing = Float64Array.from(allocated, (bytes, m) => bytes + 512 * (m % 5)); // as if blocks of so much were not drawn
    const leftOut = leftOutBytes({ ...run, left_out: { blocks: 9, share: 0.1 } }, missing, memory.blocks)!;
    expect([...leftOut]).toEqual(Array.from({ length: moments }, (_, m) => 512 * (m % 5)));
    const bands = new BlockBands(memory.blocks, Float64Array.from({ length: moments }, (_, m) => m), leftOut);
    bands.show(() => true);
    bands.begin(3);
    expect(bands.others).toBe(512 * 3);
    bands.forward(moments - 1);
    expect(bands.others).toBe(512 * ((moments - 1) % 5));
  });

  it('find the n-th largest', () => {
    const next = random(23);
    const values = Float64Array.from({ length: 5000 }, () => Math.floor(next() ** 6 * 1e15));
    const sorted = Float64Array.from(values).sort().reverse();
    for (const n of [1, 2, 77, 2500, 4999, 5000]) expect(nthLargest(values, n)).toBe(sorted[n - 1]);
  });
});

describe('the list of events', () => {
  it('has what happened to each block and segment, in order, and finds it by address, size and line', async () => {
    const { doc, data, memory, blocks, segments, moments } = await made(6000, 29);
    const list = new EventList(data, memory);
    const entries = Array.from({ length: list.count }, (_, at) => list.entry(at));
    expect(entries.map(({ moment }) => moment)).toEqual(entries.map(({ moment }) => moment).sort((a, b) => a - b));
    const truth = blocks.flatMap((block, i) => [
      `${block.alloc} allocate ${i}`, ...(block.done < moments ? [`${block.done} free ${i}`] : []),
      ...(block.freed < block.done && block.freed < moments ? [`${block.freed} free asked ${i}`] : [])]);
    expect(entries.filter(({ block }) => block !== null).map(({ moment, what, block }) => `${moment} ${what} ${block}`).sort()).toEqual(truth.sort());
    expect(entries.filter(({ what }) => what === 'segment obtained').length).toBe(segments.length);
    for (const moment of [0, 1, 777, moments - 1]) expect(list.countUpTo(moment)).toBe(entries.filter((entry) => entry.moment <= moment).length);

    const { labels } = doc.inputs[0].stacks;
    const found = (query: string): number[] => [...list.find(parseSearch(query), (block) => labels[blocks[block].stack])];
    const plain = (wants: (entry: (typeof entries)[number]) => boolean): number[] => entries.flatMap((entry, at) => (wants(entry) ? [at] : []));
    const { address, size } = blocks[41];
    const inside = address + Math.floor(size / 2);
    expect(found(`0x${inside.toString(16)}`)).toEqual(plain((entry) => entry.address! <= inside && inside < entry.address! + entry.size!));
    expect(found(`0x${inside.toString(16)}`).length).toBeGreaterThan(1);
    expect(found(`${size}`)).toEqual(plain((entry) => entry.size === size));
    expect(found('>= 1 MiB')).toEqual(plain((entry) => entry.size! >= 2 ** 20));
    expect(found('64 KiB..1m')).toEqual(plain((entry) => entry.size! >= 2 ** 16 && entry.size! <= 2 ** 20));
    const shown = bytes(size).toLowerCase();
    expect(found(shown)).toEqual(expect.arrayContaining(found(`${size}`)));
    expect(found('LAYER7')).toEqual(plain(({ block }) => block !== null && labels[blocks[block].stack].includes('layer7')));
    expect(found('')).toEqual(entries.map((_, at) => at));
    expect(found('nothing of the kind')).toEqual([]);
  });
});

describe('series', () => {
  it('gives the least and greatest of any range', () => {
    const next = random(17);
    const values = Float64Array.from({ length: 70000 }, () => Math.floor(next() * 1e6));
    const series = new Series(values);
    for (let i = 0; i < 400; ++i) {
      const begin = Math.floor(next() * values.length);
      const end = Math.min(values.length, begin + 1 + Math.floor(next() ** 4 * values.length));
      let [low, high] = [Infinity, -Infinity];
      for (let k = begin; k < end; ++k) [low, high] = [Math.min(low, values[k]), Math.max(high, values[k])];
      series.range(begin, end);
      expect([series.low, series.high]).toEqual([low, high]);
    }
  });

  it('gives each pixel column what a step function has there', () => {
    const next = random(23);
    const places = new Float64Array(3000);
    for (let i = 1; i < places.length; ++i) places[i] = places[i - 1] + Math.floor(next() * 3);
    const values = Float64Array.from(places, () => Math.floor(next() * 1000));
    const series = new Series(values);
    for (const [from, to] of [[0, places[2999]], [100, 130], [2000.5, 2001.25]]) {
      const columns = 97;
      const bounds = new Int32Array(columns + 1);
      const [low, high] = [new Float64Array(columns), new Float64Array(columns)];
      columnBounds(places, from, to, columns, bounds);
      columnRanges(series, bounds, columns, values.length, low, high);
      for (let c = 0; c < columns; ++c) {
        const [left, right] = [from + ((to - from) * c) / columns, from + ((to - from) * (c + 1)) / columns];
        const seen: number[] = [];
        for (let i = 0; i < places.length; ++i) {
          const isBefore = places[i] < left && (i + 1 === places.length || places[i + 1] >= left);
          if (isBefore || (places[i] >= left && places[i] < right)) seen.push(values[i]);
        }
        if (seen.length === 0) continue;
        expect([low[c], high[c]]).toEqual([Math.min(...seen), Math.max(...seen)]);
      }
    }
  });
});

describe('a curve of many moments', () => {
  const columns = 860;
  const make = (moments: number) => {
    const next = random(29);
    const [places, values] = [new Float64Array(moments), new Float64Array(moments)];
    for (let i = 0; i < moments; ++i) [places[i], values[i]] = [i, Math.floor(next() * 1e6)];
    return { moments, places, values, series: new Series(values) };
  };
  const draw = ({ moments, places, values, series }: ReturnType<typeof make>, share: number) => {
    const bounds = new Int32Array(columns + 1);
    const [low, high] = [new Float64Array(columns), new Float64Array(columns)];
    const [from, to] = [0.3 * moments * (1 - share), (0.3 + 0.7 * share) * moments];
    const before = cost.samples;
    columnBounds(places, from, to, columns, bounds);
    columnRanges(series, bounds, columns, moments, low, high);
    return { values, bounds, low, high, from, to, reads: cost.samples - before };
  };

  it('has every moment in a column, at most an eighth of one away from its place', () => {
    const { values, bounds, low, high, from, to } = draw(make(300000), 0.8);
    const width = (to - from) / columns;
    for (let c = 0; c < columns; ++c) {
      if (c > 0) expect(Math.abs(bounds[c] - (from + c * width))).toBeLessThanOrEqual(width / 8 + 1);
      const seen = values.subarray(bounds[c], bounds[c + 1]);
      const wider = values.subarray(Math.max(0, bounds[c] - Math.ceil(width / 8)), bounds[c + 1]);
      expect(low[c]).toBeLessThanOrEqual(Math.min(...seen));
      expect(high[c]).toBeGreaterThanOrEqual(Math.max(...seen));
      expect(low[c]).toBeGreaterThanOrEqual(Math.min(...wider));
      expect(high[c]).toBeLessThanOrEqual(Math.max(...wider));
    }
    expect([bounds[0], bounds[columns]]).toEqual([Math.ceil(from), Math.ceil(to)]);
  });

  it('reads no more values for a million than for some thousands', () => {
    for (const moments of [20000, 1000000]) {
      const made = make(moments);
      for (const share of [1, 0.5, 0.2, 0.05, 0.01, 0.001])
        expect(draw(made, share).reads, `${share} of ${moments}`).toBeLessThanOrEqual(columns * 40);
    }
  });
});

describe('map', () => {
  it('has segments with most holes first, then full ones, then free ones', () => {
    const standing = { from: 0, to: 9, segment: Int32Array.of(0, 1, 2, 3, 4), address: Float64Array.of(0, 100, 200, 300, 400), size: new Float64Array(5).fill(50) };
    expect([...holesFirst(standing, Float64Array.of(50, 0, 40, 10, 50))]).toEqual([3, 2, 0, 4, 1]);
  });

  it('finds at a pixel the address that is painted there, in both layouts', async () => {
    const { memory, moments } = await made(3000, 31);
    const standing = memory.segments.at(moments - 1);
    const backwards = Int32Array.from(standing.segment.keys()).reverse();
    for (const [kind, order] of [['scale', undefined], ['rows', undefined], ['scale', backwards], ['rows', backwards]] as const) {
      const layout = layOut(standing, kind, 640, 200 * 2 ** 20, 20, order);
      for (let slot = 0; slot < standing.segment.length; ++slot)
        for (const share of [0, 0.3, 0.99]) {
          const found = hit(layout, Math.floor(layout.begin[slot] + share * layout.pixels[slot]));
          expect(found?.slot).toBe(slot);
          expect(Math.abs(found!.offset - share * standing.size[slot])).toBeLessThan(2 / layout.perByte[slot]);
          expect(slotOf(standing, standing.address[slot] + found!.offset)).toBe(slot);
        }
    }
  });
});
