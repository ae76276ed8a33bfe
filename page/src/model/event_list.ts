// What happened in a run, moment by moment, as its blocks and segments tell it, and a search in it.
//
//   const list = new EventList(data, memory);
//   list.find(parseSearch('>= 20 MiB'), label);   // places in the list
import { bytes as bytesText } from '../view/format';
import type { Memory, RunData } from './run_data';
import { countUpTo } from './search';

export const kHappenings = ['free', 'free asked', 'segment returned', 'segment obtained', 'segment changed', 'allocate', 'out of memory'] as const;
export type Happening = (typeof kHappenings)[number];

export interface Entry {
  moment: number;
  what: Happening;
  block: number | null;
  address: number | null;
  size: number | null;
}

export interface Search {
  address: number | null; // in what is looked for
  least: number; // bytes, both included
  most: number;
  text: string; // of the line, in small letters
}

const kUnits: Record<string, number> = { '': 1, b: 1, k: 2 ** 10, m: 2 ** 20, g: 2 ** 30, t: 2 ** 40 };
const kSize = /^(>=|<=|>|<|=)?\s*(\d+(?:\.\d*)?)\s*(?:(b)|([kmgt])(?:i?b)?)?$/;

// "0x7f..." an address within a block; "20 MiB", ">= 1 GiB", "1 MiB..2 MiB" a size; all else a text.
export function parseSearch(query: string): Search {
  const wanted = query.trim().toLowerCase();
  const all = { address: null, least: 0, most: Infinity, text: '' };
  if (/^0x[0-9a-f]+$/.test(wanted)) return { ...all, address: Number(wanted) };
  const sizes = wanted.split('..').map((part) => kSize.exec(part.trim()));
  if (wanted === '' || sizes.length > 2 || sizes.some((size) => size === null)) return { ...all, text: wanted };
  const [first, second] = sizes.map((size) => {
    const unit = kUnits[size![3] ?? size![4] ?? ''];
    return { how: size![1], value: Number(size![2]) * unit, half: unit > 1 ? 0.005 * unit : 0 }; // sizes are shown with two decimals
  });
  if (second !== undefined) return { ...all, least: first.value, most: second.value };
  switch (first.how) {
    case '>': return { ...all, least: first.value + 1 };
    case '>=': return { ...all, least: first.value };
    case '<': return { ...all, most: first.value - 1 };
    case '<=': return { ...all, most: first.value };
    default: return { ...all, least: first.value - first.half, most: first.value + first.half };
  }
}

export class EventList {
  readonly count: number;
  private readonly moments: Int32Array;
  private readonly kinds: Uint8Array;
  private readonly items: Int32Array; // block or extent; of "segment returned" the last extent

  constructor(private readonly data: RunData, private readonly memory: Memory) {
    const counts = new Int32Array(data.count + 1);
    this.each((moment) => { ++counts[moment + 1]; });
    for (let m = 0; m < data.count; ++m) counts[m + 1] += counts[m];
    this.count = counts[data.count];
    this.moments = new Int32Array(this.count);
    this.kinds = new Uint8Array(this.count);
    this.items = new Int32Array(this.count);
    this.each((moment, kind, item) => {
      const at = counts[moment]++;
      this.moments[at] = moment;
      this.kinds[at] = kind;
      this.items[at] = item;
    });
  }

  entry(at: number): Entry {
    const { blocks, segments } = this.memory;
    const what = kHappenings[this.kinds[at]];
    const item = this.items[at];
    const moment = this.moments[at];
    if (what === 'out of memory') return { moment, what, block: null, address: null, size: null };
    if (what.startsWith('segment')) return { moment, what, block: null, address: segments.extentAddress[item], size: segments.extentSize[item] };
    return { moment, what, block: item, address: blocks.address[item], size: blocks.size[item] };
  }

  // The number of entries of moments up to this one.
  countUpTo(moment: number): number {
    return countUpTo(this.moments, moment);
  }

  // Places in the list, ascending. label: the line of a block.
  find(search: Search, label: (block: number) => string): Int32Array {
    const { blocks, segments } = this.memory;
    const fits = (address: number, size: number): boolean => size >= search.least && size <= search.most &&
      (search.address === null || (address <= search.address && search.address < address + size));
    const known = new Map<number, boolean>(); // by stack
    const named = (block: number): boolean => {
      if (search.text === '') return true;
      const stack = blocks.stack[block];
      let is = stack < 0 ? undefined : known.get(stack);
      if (is === undefined) known.set(stack, (is = label(block).toLowerCase().includes(search.text)));
      return is;
    };
    const ofBlock = Uint8Array.from({ length: blocks.count }, (_, i) => (fits(blocks.address[i], blocks.size[i]) && named(i) ? 1 : 0));
    const isPlain = search.address === null && search.least === 0 && search.most === Infinity;
    return this.places((kind, item) => {
      const what = kHappenings[kind];
      if (what === 'out of memory') return isPlain && what.includes(search.text);
      if (what.startsWith('segment')) return fits(segments.extentAddress[item], segments.extentSize[item]) && what.includes(search.text);
      return ofBlock[item] === 1;
    });
  }

  private places(wants: (kind: number, item: number) => boolean): Int32Array {
    const out = new Int32Array(this.count);
    let found = 0;
    for (let at = 0; at < this.count; ++at) if (wants(this.kinds[at], this.items[at])) out[found++] = at;
    return out.subarray(0, found);
  }

  // In the order in which entries of one moment stand.
  private each(add: (moment: number, kind: number, item: number) => void): void {
    const { blocks, segments } = this.memory;
    const { count } = this.data;
    const kind = (what: Happening): number => kHappenings.indexOf(what);
    const [free, asked, returned, obtained, changed, allocate, failed] = [
      kind('free'), kind('free asked'), kind('segment returned'), kind('segment obtained'), kind('segment changed'), kind('allocate'), kind('out of memory')];
    for (let i = 0; i < blocks.count; ++i) {
      if (blocks.freed[i] < count && blocks.freed[i] !== blocks.done[i]) add(blocks.freed[i], asked, i);
      if (blocks.done[i] < count) add(blocks.done[i], free, i);
    }
    for (let s = 0; s < segments.count; ++s) {
      const [begin, end] = [segments.extentBegin[s], segments.extentBegin[s + 1]];
      for (let extent = begin; extent < end; ++extent)
        if (segments.extentMoment[extent] > 0 && segments.extentMoment[extent] < count) add(segments.extentMoment[extent], extent === begin ? obtained : changed, extent);
      if (segments.end[s] < count) add(segments.end[s], returned, end - 1);
    }
    for (let i = 0; i < blocks.count; ++i) if (blocks.allocEvent[i] >= 0) add(blocks.alloc[i], allocate, i);
    for (const moment of this.data.run.failures) add(moment, failed, 0);
  }
}

export const sizeText = (size: number | null): string => (size === null ? '' : bytesText(size));
