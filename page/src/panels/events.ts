// What happened, as a list that is found in by address, size or line. Only the rows in sight are in the document.
import type { App, LiveRun } from '../app';
import { EventList, parseSearch, sizeText, type Entry } from '../model/event_list';
import { address, count } from '../view/format';
import { h, newId, replace } from '../view/dom';
import { holderOf, labelOf } from './block_text';

const kRow = 24; // pixels
const kTallest = 8e6; // pixels that every browser can scroll

export class Events {
  readonly element: HTMLElement;
  private list: EventList | null = null;
  private found = new Int32Array(0) as Int32Array; // places in the list
  private active = -1; // place in what is found
  private readonly search: HTMLInputElement;
  private readonly said = h('p', { class: 'faint', role: 'status' });
  private readonly rows = h('div', { class: 'event-rows', role: 'presentation' });
  private readonly spacer: HTMLElement;
  private readonly scroller: HTMLElement;
  private readonly id = newId('event');
  private frame = 0;
  private timer = 0;

  constructor(private readonly app: App, private readonly run: LiveRun) {
    this.search = h('input', {
      type: 'search', placeholder: '0x7f… · 20 MiB · >= 1 GiB · a line', 'aria-label': 'Search: Events, by address, size or line' });
    this.search.addEventListener('input', () => {
      clearTimeout(this.timer);
      this.timer = window.setTimeout(() => this.find(), 150);
    });
    this.spacer = h('div', { class: 'event-spacer', role: 'presentation' }, this.rows);
    this.scroller = h('div', { class: 'event-scroll', role: 'listbox', tabindex: 0, 'aria-label': 'Events' }, this.spacer);
    this.scroller.addEventListener('scroll', () => this.drawSoon());
    this.scroller.addEventListener('keydown', (event) => { if (this.onKey(event)) event.preventDefault(); });
    this.element = h('section', { class: 'panel', id: 'events', 'aria-label': 'Events' },
      h('div', { class: 'toolbar' }, h('h2', {}, 'Events'), this.search,
        h('span', { class: 'hint' }, 'A click goes to the event and keeps its block. Keys: ↑ ↓, Page Up, Page Down, Home, End, Enter.')),
      this.said, this.scroller);
    // Made when somebody comes near.
    const near = new IntersectionObserver((entries) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      near.disconnect();
      this.list = new EventList(run.data, run.memory);
      this.find();
    }, { rootMargin: '200px' });
    near.observe(this.element);
  }

  // Goes to the view's moment.
  draw(): void {
    if (this.list === null) return;
    const { moment } = this.app;
    const upTo = this.list.countUpTo(moment);
    let low = 0;
    for (let high = this.found.length; low < high;) {
      const middle = (low + high) >>> 1;
      if (this.found[middle] < upTo) low = middle + 1;
      else high = middle;
    }
    const isThere = this.active >= 0 && this.active < this.found.length && this.list.entry(this.found[this.active]).moment === moment;
    if (!isThere) this.active = Math.min(low - 1, this.found.length - 1);
    this.reveal();
    this.drawRows();
  }

  private find(): void {
    if (this.list === null) return;
    this.found = this.list.find(parseSearch(this.search.value), (block) => labelOf(this.app, this.run, block));
    const { is_thinned: isThinned, event_count: all } = this.run.data.run;
    const of = this.found.length === this.list.count ? count(this.list.count) : `${count(this.found.length)} of ${count(this.list.count)}`;
    this.said.textContent = this.found.length === 0 ? 'nothing matches'
      : `${of} entries${isThinned ? `: what changed between the moments of this page, of ${count(all)} events in all` : ''}`;
    this.scroller.hidden = this.found.length === 0;
    this.spacer.style.height = `${Math.min(kTallest, this.found.length * kRow)}px`;
    this.active = -1;
    this.draw();
  }

  private get visible(): number {
    return Math.max(1, Math.ceil(this.scroller.clientHeight / kRow));
  }

  // Of more rows than a browser can scroll a pixel is more than a row.
  private firstRow(): number {
    const { scrollTop, scrollHeight, clientHeight } = this.scroller;
    if (this.found.length * kRow <= kTallest) return Math.floor(scrollTop / kRow);
    return Math.round((scrollTop / Math.max(1, scrollHeight - clientHeight)) * Math.max(0, this.found.length - this.visible + 1));
  }

  private reveal(): void {
    if (this.active < 0) return;
    const first = this.firstRow();
    if (this.active >= first && this.active < first + this.visible - 1) return;
    const wanted = Math.max(0, this.active - Math.floor(this.visible / 2));
    const { scrollHeight, clientHeight } = this.scroller;
    this.scroller.scrollTop = this.found.length * kRow <= kTallest ? wanted * kRow
      : (wanted / Math.max(1, this.found.length - this.visible + 1)) * (scrollHeight - clientHeight);
  }

  private drawSoon(): void {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.drawRows();
    });
  }

  private drawRows(): void {
    const { list } = this;
    if (list === null) return;
    const first = Math.max(0, Math.min(this.firstRow(), this.found.length - 1));
    const last = Math.min(this.found.length, first + this.visible + 1);
    const isTall = this.found.length * kRow > kTallest;
    this.rows.style.transform = `translateY(${isTall ? this.scroller.scrollTop : first * kRow}px)`;
    replace(this.rows, ...Array.from({ length: last - first }, (_, i) => this.rowOf(first + i, list.entry(this.found[first + i]))));
    if (this.active >= first && this.active < last) this.scroller.setAttribute('aria-activedescendant', `${this.id}-${this.active}`);
    else this.scroller.removeAttribute('aria-activedescendant');
  }

  private rowOf(place: number, entry: Entry): HTMLElement {
    const { block } = entry;
    const event = this.run.data.event[entry.moment];
    const label = block === null ? '' : holderOf(this.app, this.run, block) ?? labelOf(this.app, this.run, block);
    const isActive = place === this.active;
    return h('div', {
      class: entry.what === 'out of memory' ? 'event-row out-of-memory' : 'event-row', role: 'option', id: `${this.id}-${place}`, 'aria-selected': String(isActive),
      'aria-setsize': this.found.length, 'aria-posinset': place + 1, onclick: () => this.choose(place) },
      h('span', { class: 'number' }, count(event)), h('span', {}, entry.what), h('span', { class: 'number' }, sizeText(entry.size)),
      h('span', { class: 'faint' }, entry.address === null ? '' : address(entry.address)), h('span', { class: 'event-label' }, label));
  }

  private choose(place: number): void {
    if (this.list === null || place < 0 || place >= this.found.length) return;
    this.active = place;
    const { moment, block } = this.list.entry(this.found[place]);
    this.app.jump(moment, { block });
    this.drawRows();
  }

  private onKey(event: KeyboardEvent): boolean {
    if (event.altKey || event.ctrlKey || event.metaKey) return false;
    const page = Math.max(1, this.visible - 2);
    const by = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity }[event.key];
    if (event.key === 'Enter') this.choose(this.active);
    else if (by !== undefined) {
      this.active = Math.max(0, Math.min(this.found.length - 1, this.active + by));
      this.reveal();
      this.drawRows();
    } else return false;
    return true;
  }
}
