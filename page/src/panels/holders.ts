// Who holds what at the moment, as a table and as a flame graph that hangs down from the outermost frame.
import type { App, LiveRun } from '../app';
import { frameTree, groupLabel, groupsOf, hasOtherFrames, sumInParts, type Frame, type GroupBy, type Holder } from '../model/holders';
import { leftOutText } from '../model/left_out';
import { bytes, count, percent } from '../view/format';
import { bar, h, panel, replace } from '../view/dom';
import { css, kCategories, mix } from '../view/palette';
import type { SegmentMap } from './map';
import { Table } from './table';

const kRow = 20; // pixels
const kLeast = 0.004; // share of the width from which on a frame is drawn

export class Holders {
  readonly element: HTMLElement;
  private readonly table: Table<Holder>;
  private readonly flames = h('div', { class: 'flames', role: 'group', 'aria-label': 'Flame graph: live bytes by stack, outermost frame on top' });
  private readonly path = h('p', { class: 'faint flame-path' });
  private readonly group: HTMLSelectElement;
  private readonly isWhole = h('input', { type: 'checkbox', onchange: () => this.drawFlames() });
  private total = 1;
  private zoom: string[] = [];

  constructor(private readonly app: App, private readonly run: LiveRun, private readonly map: SegmentMap) {
    this.group = h('select', { 'aria-label': 'Group by', onchange: () =>
      app.store.set({ group: this.group.value as GroupBy, stack: null }, 'jump') }, ...groupsOf(run.data, app.input()).map((by) => h('option', { value: by }, `by ${by}`)));
    this.table = new Table<Holder>('Who holds it', [
      { name: 'Bytes', text: (row) => bytes(row.bytes), value: (row) => row.bytes },
      { name: 'Share', text: (row) => percent(row.bytes / this.total), value: (row) => row.bytes / this.total,
        cell: (row) => h('span', { class: 'share' }, bar(row.bytes / this.total, 'live'), percent(row.bytes / this.total)) },
      { name: 'Blocks', text: (row) => count(row.blocks), value: (row) => row.blocks },
      { name: 'Held by', text: (row) => row.label },
    ], {
      find: (search) => this.app.store.set({ search }),
      onRow: (row) => this.mark(row.label),
      isChosen: (row) => row.label === this.app.view.stack,
    });
    this.element = panel('Who holds it', { id: 'holders' },
      h('div', { class: 'row' }, this.group, h('span', { class: 'faint' }, `live blocks at the moment; a row marks its blocks on the map and over time. ${leftOutText(run.data.run)}`)),
      h('div', { class: 'holders' }, this.table.element, h('div', { class: 'flame-box' },
        h('div', { class: 'row' }, this.path, hasOtherFrames(app.input()) ? h('label', { class: 'check' }, this.isWhole, 'C++ frames') : null),
        h('div', { class: 'flame-scroll', tabindex: 0, role: 'region', 'aria-label': 'Flame graph, scrolls' }, this.flames))));
  }

  draw(): void {
    const { live, memory, data } = this.run;
    live.moveTo(this.app.moment);
    const input = this.app.input();
    const groups = groupsOf(data, input);
    const { group } = this.app.view;
    const by = this.group.value = group !== null && groups.includes(group) ? group : groups[0];
    const label = groupLabel(memory.blocks, data, input, by, (block) => this.map.colours.phase(block));
    const rows = sumInParts(live, memory.blocks, input, by, label);
    this.total = Math.max(1, rows.reduce((sum, row) => sum + row.bytes, 0));
    this.table.set(rows, this.app.view.search);
  }

  drawFlames(): void {
    const { live, memory } = this.run;
    live.moveTo(this.app.moment);
    this.hang(frameTree(live, memory.blocks, this.app.input(), this.isWhole.checked));
  }

  private mark(label: string): void {
    this.app.store.set({ stack: this.app.view.stack === label ? null : label, group: this.group.value as GroupBy, pin: null, cause: null }, 'jump');
  }

  private hang(root: Frame): void {
    let top = root;
    const path: string[] = [];
    for (const name of this.zoom) {
      const child = top.children.get(name);
      if (child === undefined) break;
      top = child;
      path.push(name);
    }
    this.path.textContent = path.length === 0 ? `${bytes(root.bytes)} in ${count(root.blocks)} live blocks; a frame opens at a click`
      : `${bytes(top.bytes)} in ${count(top.blocks)} blocks under ${path[path.length - 1]}`;
    const cells: HTMLElement[] = [];
    let deepest = 0;
    const place = (frame: Frame, left: number, depth: number, names: string[]): void => {
      const width = frame.bytes / Math.max(1, top.bytes);
      if (width < kLeast || cells.length > 1500) return;
      deepest = Math.max(deepest, depth);
      cells.push(this.cell(frame, left, width, depth, names));
      let at = left;
      for (const child of [...frame.children.values()].sort((a, b) => b.bytes - a.bytes)) {
        place(child, at, depth + 1, [...names, child.name]);
        at += child.bytes / Math.max(1, top.bytes);
      }
    };
    place(top, 0, 0, path);
    this.flames.style.height = `${(deepest + 1) * kRow}px`;
    replace(this.flames, ...cells);
  }

  private cell(frame: Frame, left: number, width: number, depth: number, names: string[]): HTMLElement {
    const text = `${frame.name}: ${bytes(frame.bytes)} in ${count(frame.blocks)} blocks`;
    const cell = h('button', { type: 'button', class: 'flame', title: text, 'aria-label': text, onclick: () => this.open(names, depth) },
      width > 0.03 ? frame.name : '');
    cell.style.left = `${left * 100}%`;
    cell.style.width = `calc(${width * 100}% - 1px)`;
    cell.style.top = `${depth * kRow}px`;
    let hash = 0;
    for (const letter of frame.name.split(':')[0]) hash = (hash * 31 + letter.charCodeAt(0)) >>> 0;
    const { theme } = this.app;
    cell.style.background = css(mix(theme.paper, kCategories[hash % kCategories.length], depth === 0 ? 0.12 : 0.28));
    return cell;
  }

  // A frame is opened; the one on top goes back by one.
  private open(names: string[], depth: number): void {
    this.zoom = depth === 0 ? names.slice(0, -1) : names;
    this.drawFlames();
  }
}
