// Rank by time as a heat map: a row a rank, brighter where more of the memory is held. A click or the arrow keys choose a rank.
import { sharesOf, type Fleet } from '../document/fleet';
import { bytes, duration } from '../view/format';
import { h } from '../view/dom';
import { mix, pixel, sequence, type Theme } from '../view/palette';

const kRamp = 64;

export class Heat {
  readonly element: HTMLElement;
  kind: 'allocated' | 'reserved' = 'reserved';
  private readonly canvas = h('canvas', { 'aria-hidden': 'true' });
  private readonly box: HTMLElement;
  private readonly marker = h('div', { class: 'heat-marker', 'aria-hidden': 'true' });
  private readonly tip = h('p', { class: 'faint heat-tip', role: 'status' });
  private readonly rows: { member: number; allocated: Int16Array; reserved: Int16Array }[];

  constructor(private readonly fleet: Fleet, private readonly theme: () => Theme, private readonly choose: (member: number) => void) {
    this.rows = fleet.heat.rows.map((row) => ({ member: row.member, allocated: sharesOf(row.allocated), reserved: sharesOf(row.reserved) }));
    this.box = h('div', {
      class: 'heat', tabindex: 0, role: 'application', 'aria-roledescription': 'heat map',
      'aria-label': `Memory of ${this.rows.length} ranks over time. Arrow up and down choose a rank; the table below has the figures.` }, this.canvas, this.marker);
    this.element = h('div', {}, this.box, this.tip);
    this.box.style.height = `${Math.max(60, Math.min(520, this.rows.length * 18))}px`;
    this.box.addEventListener('pointermove', (event) => this.tell(event));
    this.box.addEventListener('click', (event) => {
      const row = this.rowAt(event.clientY);
      if (row !== undefined) this.choose(row.member);
    });
    this.box.addEventListener('keydown', (event) => {
      const by = { ArrowUp: -1, ArrowDown: 1, PageUp: -16, PageDown: 16 }[event.key];
      if (by === undefined) return;
      event.preventDefault();
      const at = this.rows.findIndex((row) => row.member === this.chosen);
      const next = this.rows[Math.max(0, Math.min(this.rows.length - 1, at + by))];
      if (next !== undefined) this.choose(next.member);
    });
  }

  private chosen: number | null = null;

  draw(): void {
    const { bins } = this.fleet.heat;
    const height = Math.max(1, this.rows.length);
    const image = new ImageData(bins, height);
    const pixels = new Uint32Array(image.data.buffer);
    const theme = this.theme();
    const ramp = Array.from({ length: kRamp }, (_, i) => pixel(sequence(i / (kRamp - 1))));
    const none = pixel(mix(theme.paper, theme.ink, 0.06));
    this.rows.forEach((row, y) => {
      const shares = row[this.kind];
      for (let x = 0; x < bins; ++x)
        pixels[y * bins + x] = shares[x] === undefined || shares[x] < 0 ? none : ramp[Math.min(kRamp - 1, Math.floor((shares[x] * kRamp) / 1000))];
    });
    this.canvas.width = bins;
    this.canvas.height = height;
    this.canvas.getContext('2d')!.putImageData(image, 0, 0);
  }

  mark(member: number | null): void {
    this.chosen = member;
    const at = this.rows.findIndex((row) => row.member === member);
    this.marker.hidden = at < 0;
    this.marker.style.top = `${(at / this.rows.length) * 100}%`;
    this.marker.style.height = `${100 / this.rows.length}%`;
  }

  private rowAt(clientY: number): (typeof this.rows)[number] | undefined {
    const box = this.box.getBoundingClientRect();
    return this.rows[Math.floor(((clientY - box.top) / box.height) * this.rows.length)];
  }

  private tell(event: PointerEvent): void {
    const row = this.rowAt(event.clientY);
    const { heat, ranks } = this.fleet;
    if (row === undefined) return;
    const box = this.box.getBoundingClientRect();
    const bin = Math.max(0, Math.min(heat.bins - 1, Math.floor(((event.clientX - box.left) / box.width) * heat.bins)));
    const share = row[this.kind][bin];
    const where = heat.begin_us === null || heat.end_us === null ? `${Math.round((100 * bin) / heat.bins)} % of its events`
      : `after ${duration(((heat.end_us - heat.begin_us) * bin) / heat.bins)}`;
    this.tip.textContent = `${ranks[row.member].name}, ${where}: ${share === undefined || share < 0 ? 'not in its trace' : `${bytes(Math.round((share * heat.full_bytes) / 1000))} ${this.kind}`}`;
  }
}
