// Holds the view, tells who listens once a frame, and keeps the address in step. Small moves replace the address when they
// come to rest; a jump makes an entry that "back" returns from.
import { cost } from '../model/cost';
import { fromHash, toHash, type View } from './state';

// How the view changed: by a move, which may go on, by a jump, which "back" returns from, or by the address.
export type Change = 'move' | 'jump' | 'silent';
type Listener = (changed: Set<keyof View>, view: View) => void;
type RestListener = (changed: Set<keyof View>, how: Change) => void;

const kRestMs = 160;

export class Store {
  private current: View;
  private changed = new Set<keyof View>();
  private sinceRest = new Set<keyof View>();
  private frame = 0;
  private timer = 0;
  private readonly listeners: Listener[] = [];
  private readonly restListeners: RestListener[] = [];

  constructor(private readonly start: View) {
    this.current = fromHash(location.hash, start);
    const read = (): void => this.set(fromHash(location.hash, this.start), 'silent');
    addEventListener('popstate', read);
    addEventListener('hashchange', read);
  }

  get view(): View {
    return this.current;
  }

  // Called in the frame after a change; what is heavy listens to onRest.
  onFrame(listener: Listener): void {
    this.listeners.push(listener);
  }

  onRest(listener: RestListener): void {
    this.restListeners.push(listener);
  }

  set(part: Partial<View>, how: Change = 'move'): void {
    const next = { ...this.current, ...part };
    let any = false;
    for (const key of Object.keys(part) as (keyof View)[])
      if (JSON.stringify(next[key]) !== JSON.stringify(this.current[key])) {
        this.changed.add(key);
        this.sinceRest.add(key);
        any = true;
      }
    if (!any) return;
    if (how === 'jump') {
      this.writeAddress('replace');
      this.current = next;
      this.writeAddress('push');
    } else {
      this.current = next;
    }
    this.frame ||= requestAnimationFrame(() => this.tell());
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.rest(how), how === 'jump' ? 0 : kRestMs);
  }

  // Tells everything, as after a change of the theme or the size.
  refresh(): void {
    for (const key of Object.keys(this.current) as (keyof View)[]) {
      this.changed.add(key);
      this.sinceRest.add(key);
    }
    this.frame ||= requestAnimationFrame(() => this.tell());
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.rest('silent'), 0);
  }

  private tell(): void {
    this.frame = 0;
    const changed = this.changed;
    this.changed = new Set();
    for (const listener of this.listeners) listener(changed, this.current);
  }

  private rest(how: Change): void {
    const changed = this.sinceRest;
    this.sinceRest = new Set();
    ++cost.rests;
    if (how === 'move') this.writeAddress('replace');
    for (const listener of this.restListeners) listener(changed, how);
  }

  private writeAddress(how: 'replace' | 'push'): void {
    const hash = toHash(this.current, this.start);
    if (hash === location.hash) return;
    try {
      if (how === 'push') history.pushState(null, '', hash || '#');
      else history.replaceState(null, '', hash || '#');
    } catch {
      if (how === 'push') location.hash = hash; // where a browser lets a file have no history of its own
    }
  }
}
