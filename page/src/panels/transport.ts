// The moment: a slider, steps back and forth, play, and jumps to the places that matter.
import type { App } from '../app';
import { count, duration } from '../view/format';
import { h, setAttribute, write } from '../view/dom';

const kPlayMs = 14000; // from the first moment to the last

export class Transport {
  readonly element: HTMLElement;
  private readonly slider = h('input', { type: 'range', min: 0, value: 0, step: 1, 'aria-label': 'Moment' });
  private readonly playButton = h('button', { type: 'button', class: 'play', 'aria-pressed': 'false', 'aria-label': 'Play' }, '▶');
  private readonly text = h('output', { class: 'slot' });
  private isPlaying = false;
  private at = 0; // the moment as played, with its fraction

  constructor(private readonly app: App) {
    this.slider.addEventListener('input', () => this.app.store.set({ moment: Number(this.slider.value) }));
    this.playButton.addEventListener('click', () => this.play(!this.isPlaying));
    const button = (label: string, text: string, onclick: () => void): HTMLElement =>
      h('button', { type: 'button', class: 'quiet', 'aria-label': label, title: label, onclick }, text);
    const step = (by: number) => (): void => this.step(by);
    this.element = h('div', { class: 'transport', role: 'group', 'aria-label': 'Moment' },
      this.playButton, button('One moment back', '‹', step(-1)), button('One moment on', '›', step(1)), h('div', { class: 'slider' }, this.slider),
      h('div', { class: 'moment-text' }, this.text),
      h('span', { class: 'jumps' },
        button('To the moment of the verdict', 'verdict', () => this.to((run) => run.verdict_moment)),
        button('To the peak of reserved memory', 'peak reserved', () => this.to((run) => run.peaks.reserved.moment)),
        button('To the peak of allocated memory', 'peak allocated', () => this.to((run) => run.peaks.allocated.moment))));
  }

  momentText(): string {
    const data = this.app.observed();
    if (data === null) return '';
    const { moment, beyond } = this.app;
    const event = data.event[moment];
    if (beyond > 0) return `projected, ${count(beyond)} requests on`;
    const where = event < 0 ? 'before the first event' : `event ${count(event)}`;
    return data.time === null ? where : `${where}, ${duration(Math.max(0, data.time[moment] - data.time[0]))}`;
  }

  draw(): void {
    const data = this.app.observed();
    if (data === null) return;
    const text = this.momentText();
    const value = String(this.app.view.moment);
    setAttribute(this.slider, 'max', String(this.app.lastMoment()));
    if (this.slider.value !== value) this.slider.value = value; // a hand that drags it has moved it already
    setAttribute(this.slider, 'aria-valuetext', text);
    write(this.text, text);
  }

  play(on: boolean): void {
    this.isPlaying = on;
    this.playButton.textContent = on ? '❚❚' : '▶';
    this.playButton.setAttribute('aria-pressed', String(on));
    this.playButton.setAttribute('aria-label', on ? 'Pause' : 'Play');
    if (!on) return;
    const data = this.app.observed();
    if (data === null) return;
    this.at = this.app.view.moment >= this.app.lastMoment() ? 0 : this.app.view.moment;
    const perMs = data.count / kPlayMs;
    const isCalm = matchMedia('(prefers-reduced-motion: reduce)').matches; // then twice a second
    let last = performance.now();
    const tick = (now: number): void => {
      if (!this.isPlaying) return;
      if (!isCalm || now - last >= 500) {
        this.at += perMs * Math.min(now - last, isCalm ? 1000 : 100);
        last = now;
        this.app.store.set({ moment: Math.min(this.app.lastMoment(), Math.floor(this.at)) });
      }
      if (this.at >= this.app.lastMoment()) this.play(false);
      else requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  }

  step(by: number): void {
    const data = this.app.observed();
    if (data !== null) this.app.store.set({ moment: Math.max(0, Math.min(this.app.lastMoment(), this.app.view.moment + by)) });
  }

  private to(moment: (run: { verdict_moment: number; peaks: { reserved: { moment: number }; allocated: { moment: number } } }) => number): void {
    const data = this.app.observed();
    if (data !== null) this.app.jump(moment(data.run));
  }
}
