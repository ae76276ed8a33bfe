// The life of the selected block: when it came and went, how long it waited, its stack, and what it keeps.
import type { App, LiveRun } from '../app';
import { bytes, count } from '../view/format';
import { copyButton, h, replace } from '../view/dom';
import { blockLine, holderOf } from './block_text';
import { pathOf } from '../model/holders';

export class BlockLife {
  readonly element = h('section', { class: 'panel block-life', 'aria-label': 'The selected block', 'aria-live': 'polite' });

  constructor(private readonly app: App, private readonly run: LiveRun) {}

  draw(): void {
    const { block } = this.app.view;
    const { blocks } = this.run.memory;
    if (block === null || block >= blocks.count) {
      this.element.hidden = true;
      return;
    }
    this.element.hidden = false;
    const { data } = this.run;
    const line = blockLine(this.app, this.run, block);
    const isHere = blocks.isInUse(block, this.app.moment);
    const jump = (moment: number, text: string): HTMLElement =>
      h('button', { type: 'button', class: 'link', onclick: () => this.app.jump(moment) }, text);
    const event = (moment: number): string => `event ${count(data.event[Math.min(moment, data.count - 1)])}`;
    const row = (name: string, value: Node | string): HTMLElement => h('div', {}, h('dt', {}, name), h('dd', {}, value));
    const input = this.app.input();
    const stack = blocks.stack[block];
    const path = stack < 0 ? [] : pathOf(input, stack, false).reverse();
    const whole = stack < 0 ? [] : pathOf(input, stack).reverse();
    const holder = holderOf(this.app, this.run, block);
    const text = blocks.text === null || blocks.text[block] < 0 ? null : input.texts[blocks.text[block]];
    replace(this.element,
      h('h2', {}, 'Block'),
      h('p', { class: 'block-head' }, h('strong', {}, line.size), isHere ? ` ${line.state}` : ' not in use at this moment', h('br'), line.label),
      h('dl', {},
        holder === null ? null : row('Held by', holder),
        row('Address', line.address), row('Request', line.request),
        row('Allocated', blocks.allocEvent[block] < 0 ? 'before the trace' : jump(blocks.alloc[block], event(blocks.alloc[block]))),
        row('Freed', blocks.isFreedInWindow(block) ? jump(blocks.freed[block], event(blocks.freed[block])) : 'not in this trace'),
        blocks.isFreedInWindow(block) && blocks.done[block] > blocks.freed[block]
          ? row('Waited until', blocks.done[block] < data.count ? jump(blocks.done[block], event(blocks.done[block])) : 'the end of the trace') : row('Waited', 'no'),
        row('Stream', data.run.streams[blocks.stream[block]] ?? '0'), row('Pool', data.run.pools[blocks.pool[block]] ?? 'default'),
        text === null ? row('Annotation', 'none') : row('Annotation', text)),
      path.length === 0 ? null : h('details', { open: true }, h('summary', {}, `Stack, innermost first (${count(path.length)} frames)`),
        h('div', { class: 'row' }, copyButton(() => path.join('\n'), 'the stack')),
        h('ol', { class: 'stack', tabindex: 0 }, ...path.map((frame) => h('li', {}, frame)))),
      whole.length === path.length ? null : h('details', {}, h('summary', {}, `With frames of C++ (${count(whole.length)})`),
        h('ol', { class: 'stack', tabindex: 0 }, ...whole.map((frame) => h('li', {}, frame)))),
      h('p', { class: 'row' },
        h('button', { type: 'button', onclick: () => this.app.store.set({ stack: line.label, group: 'line', pin: null, cause: null }, 'jump') }, 'Mark all of its line'),
        h('button', { type: 'button', class: 'quiet', onclick: () => this.app.store.set({ block: null }, 'jump') }, 'Close')),
      h('p', { class: 'off-screen' }, `${bytes(blocks.size[block])} at ${line.address}`));
  }
}
