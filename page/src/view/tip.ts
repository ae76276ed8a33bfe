// A note beside the pointer, inside a positioned box.
import { h } from './dom';

export class Tip {
  readonly element = h('div', { class: 'tip', hidden: true, 'aria-hidden': 'true' });

  constructor(private readonly box: HTMLElement) {}

  // The first line stands out. Beside the place, above it where there is no room below.
  show(lines: string[], clientX: number, clientY: number): void {
    this.element.replaceChildren(...lines.filter((line) => line !== '').map((line, i) => h(i === 0 ? 'strong' : 'span', {}, line)));
    this.element.hidden = false;
    const box = this.box.getBoundingClientRect();
    const { offsetWidth: width, offsetHeight: height } = this.element;
    const [x, y] = [clientX - box.left, clientY - box.top];
    const left = x + 14 + width <= box.width ? x + 14 : Math.max(0, x - 14 - width);
    const top = y + 18 + height <= box.height ? y + 18 : Math.max(-box.top, y - 12 - height);
    this.element.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
  }

  hide(): void {
    if (!this.element.hidden) this.element.hidden = true;
  }
}
