// What the reader looks at. It lies in the address after '#', so that a view can be sent and "back" works.
import { kGroups, type GroupBy } from '../model/holders';
import type { Axis } from '../model/run_data';

export const kColours = ['state', 'name', 'stack', 'phase', 'size', 'age', 'text'] as const;
export type ColourBy = (typeof kColours)[number];
export type Layout = 'scale' | 'rows';
export type Order = 'holes' | 'address';
export type Theme = 'auto' | 'light' | 'dark';

export interface View {
  input: number;
  moment: number; // of the input's observed run
  axis: Axis;
  from: number | null; // the part of the axis that is shown; null: all of it
  to: number | null;
  colour: ColourBy;
  layout: Layout;
  order: Order; // of the segments on the map
  run: number | null; // a what-if or host run whose map is shown beside
  overlays: number[]; // what-ifs whose curves are shown
  block: number | null; // of the observed run
  cause: number | null; // whose blocks are marked
  pin: string | null; // label of the pin whose blocks are marked
  stack: string | null; // label of the group whose blocks are marked
  group: GroupBy | null; // that the table of holders has; null: the first that the file can tell
  pins: boolean; // mark what pins segments
  bands: ColourBy | null; // of the blocks over time; null: the first that the file can tell
  pools: boolean; // show private pools
  search: string;
  theme: Theme;
}

export const kStart: View = {
  input: 0, moment: 0, axis: 'event', from: null, to: null, colour: 'state', layout: 'scale', order: 'holes', run: null, overlays: [],
  block: null, cause: null, pin: null, stack: null, group: null, pins: false, bands: null, pools: true, search: '', theme: 'auto',
};

const kKeys: [keyof View, string][] = [
  ['input', 'i'], ['moment', 'm'], ['axis', 'x'], ['from', 'a'], ['to', 'b'], ['colour', 'c'], ['layout', 'l'], ['order', 'r'], ['run', 'w'],
  ['overlays', 'o'], ['block', 'k'], ['cause', 'e'], ['pin', 'p'], ['stack', 's'], ['group', 'g'], ['pins', 'h'], ['bands', 'd'], ['pools', 'v'], ['search', 'q'],
  ['theme', 't']];

export function toHash(view: View, start: View): string {
  const out: string[] = [];
  for (const [key, short] of kKeys) {
    const value = view[key];
    if (JSON.stringify(value) === JSON.stringify(start[key])) continue;
    const text = value === null ? '' : typeof value === 'boolean' ? (value ? '1' : '0') : Array.isArray(value) ? value.join('.') : String(value);
    out.push(`${short}=${encodeURIComponent(text)}`);
  }
  return out.length === 0 ? '' : `#${out.join('&')}`;
}

// A hash of another page or a broken one leaves what it does not tell as it starts.
export function fromHash(hash: string, start: View): View {
  const view: View = { ...start };
  const given = new Map<string, string>();
  for (const pair of hash.replace(/^#/, '').split('&')) {
    const [name, text] = pair.split('=');
    try {
      if (name && text !== undefined) given.set(name, decodeURIComponent(text));
    } catch { /* not an escape: not ours */ }
  }
  const number = (short: string, or: number | null): number | null => {
    const text = given.get(short);
    if (text === undefined) return or;
    return text !== '' && Number.isFinite(Number(text)) ? Number(text) : null;
  };
  const whole = (short: string, or: number | null): number | null => {
    const value = number(short, or);
    return value === null ? null : Math.max(0, Math.round(value));
  };
  const oneOf = <T extends string>(short: string, all: readonly T[], or: T): T => all.find((v) => v === given.get(short)) ?? or;
  const text = (short: string, or: string | null): string | null => {
    const found = given.get(short);
    return found === undefined ? or : found === '' ? null : found;
  };
  view.input = whole('i', start.input) ?? start.input;
  view.moment = whole('m', start.moment) ?? start.moment;
  view.axis = oneOf('x', ['event', 'time'] as const, start.axis);
  view.from = number('a', start.from);
  view.to = number('b', start.to);
  view.colour = oneOf('c', kColours, start.colour);
  view.layout = oneOf('l', ['scale', 'rows'] as const, start.layout);
  view.order = oneOf('r', ['holes', 'address'] as const, start.order);
  view.run = whole('w', start.run);
  const overlays = given.get('o');
  if (overlays !== undefined) view.overlays = overlays === '' ? [] : overlays.split('.').map(Number).filter(Number.isInteger);
  view.block = whole('k', start.block);
  view.cause = whole('e', start.cause);
  view.pin = text('p', start.pin);
  view.stack = text('s', start.stack);
  view.group = kGroups.find((by) => by === given.get('g')) ?? start.group;
  view.pins = given.has('h') ? given.get('h') === '1' : start.pins;
  view.bands = kColours.find((by) => by === given.get('d')) ?? start.bands;
  view.pools = given.has('v') ? given.get('v') === '1' : start.pools;
  view.search = given.get('q') ?? start.search;
  view.theme = oneOf('t', ['auto', 'light', 'dark'] as const, start.theme);
  return view;
}
