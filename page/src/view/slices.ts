// Work that waits until nothing else happens, a piece at a time, so that none holds up a frame. A piece draws what is so when it
// runs: one that waits already is not added again.
//
//   const slices = new Slices();
//   slices.add('pins', () => pins.draw());
//   slices.go(() => say('all is drawn'));
//   slices.delay();    // the view moves: the rest comes a little after
import { cost } from '../model/cost';

const kQuietMs = 120; // without a move
const kLatestMs = 250; // then a piece runs, idle or not

export class Slices {
  private readonly pieces = new Map<string, () => void>();
  private done: (() => void) | null = null;
  private quietFrom = 0;
  private isAsked = false;

  add(name: string, piece: () => void): void {
    if (!this.pieces.has(name)) ++cost.waiting;
    this.pieces.set(name, piece);
  }

  go(done: (() => void) | null = null): void {
    this.done = done ?? this.done;
    this.ask();
  }

  delay(): void {
    this.quietFrom = performance.now() + kQuietMs;
  }

  // All that is left, now: before the page is printed.
  finish(): void {
    while (this.runOne()) { /* the next */ }
  }

  // Of what is no longer shown.
  forget(): void {
    cost.waiting -= this.pieces.size;
    this.pieces.clear();
    this.done = null;
  }

  private ask(): void {
    if (this.isAsked) return;
    this.isAsked = true;
    const next = (): void => this.next();
    const wait = this.quietFrom - performance.now();
    if (wait > 0) setTimeout(next, wait);
    else if ('requestIdleCallback' in window) requestIdleCallback(next, { timeout: kLatestMs });
    else setTimeout(next, 0);
  }

  private next(): void {
    this.isAsked = false;
    if (performance.now() < this.quietFrom || this.runOne()) {
      this.ask();
      return;
    }
    this.done?.();
    this.done = null;
  }

  private runOne(): boolean {
    const [first] = this.pieces;
    if (first === undefined) return false;
    this.pieces.delete(first[0]);
    --cost.waiting;
    ++cost.rests;
    first[1]();
    return true;
  }
}
