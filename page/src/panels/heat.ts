// Rank by time as a heat map: a row a rank, brighter where more of the memory is held. A click or the arrow keys choose a rank.
import type { Fleet } from '../document/answers/fleet';
import { sharesOf } from '../document/fleet';
import { bytes, duration } from '../view/format';
import { h, replace } from '../view/dom';
import { mix, pixel, sequence, type Theme } from '../view/palette';

const kRamp = 64;
const kHighest = 520; // px, of what is seen at once
const kLabelHeight = 15;

export type HeatScale = 'one' | 'stage' | 'log';

interface HeatRow {
  member: number;
  stage: number;
  allocated: Int16Array;
  reserved: Int16Array;
}

export class Heat {
  readonly element: HTMLElement;
  kind: 'allocated' | 'reserved' = 'reserved';
  scale: HeatScale = 'one';
  readonly firstUse: number; // the first bin in which any rank holds anything
  isCut: boolean;
  private readonly canvas = h('canvas', { 'aria-hidden': 'true' });
  private readonly box: HTMLElement;
  private readonly marks = h('div', { 'aria-hidden': 'true' });
  private readonly times = h('div', { class: 'heat-times faint', 'aria-hidden': 'true' });
  private readonly marker = h('div', { class: 'heat-marker', 'aria-hidden': 'true' });
  private readonly tip = h('p', { class: 'faint heat-tip', role: 'status' });
  private readonly rows: HeatRow[];
  private readonly rowHeight: number;

  constructor(private readonly fleet: Fleet, private readonly theme: () => Theme, private readonly choose: (member: number) => void) {
    const stageOf = new Map(fleet.stages.flatMap((stage, i) => stage.members.map((member): [number, number] => [member, i])));
    this.rows = fleet.heat.rows.map((row) => ({
      member: row.member, stage: stageOf.get(row.member) ?? -1, allocated: sharesOf(row.allocated), reserved: sharesOf(row.reserved) }));
    this.firstUse = this.rows.reduce((least, row) => {
      const first = row.reserved.findIndex((share) => share > 0);
      return first < 0 ? least : Math.min(least, first);
    }, fleet.heat.bins);
    if (this.firstUse === fleet.heat.bins) this.firstUse = 0;
    this.isCut = this.firstUse > 0;
    this.rowHeight = Math.max(2, Math.min(18, Math.floor(kHighest / Math.max(1, this.rows.length))));
    this.box = h('div', {
      class: 'heat', tabindex: 0, role: 'application', 'aria-roledescription': 'heat map',
      'aria-label': `Memory of ${this.rows.length} ranks over time. Arrow up and down choose a rank; the table below has the figures.` },
      this.canvas, this.marks, this.marker);
    this.box.style.height = `${this.rows.length * this.rowHeight}px`;
    this.element = h('div', {}, h('div', { class: 'heat-scroll' }, this.labels(), this.box), this.times, this.tip);
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
    const { from } = this;
    const bins = Math.max(1, this.fleet.heat.bins - from);
    const height = Math.max(1, this.rows.length);
    const image = new ImageData(bins, height);
    const pixels = new Uint32Array(image.data.buffer);
    const theme = this.theme();
    const ramp = Array.from({ length: kRamp }, (_, i) => pixel(sequence(i / (kRamp - 1))));
    const none = pixel(mix(theme.paper, theme.ink, 0.06));
    const most = new Map<number, number>();
    for (const row of this.rows)
      for (const share of row[this.kind]) most.set(row.stage, Math.max(most.get(row.stage) ?? 1, share));
    this.rows.forEach((row, y) => {
      const shares = row[this.kind];
      for (let x = 0; x < bins; ++x) {
        const share = shares[from + x];
        pixels[y * bins + x] = share === undefined || share < 0 ? none
          : ramp[Math.min(kRamp - 1, Math.floor(this.brightness(share, most.get(row.stage) ?? 1000) * kRamp))];
      }
    });
    this.canvas.width = bins;
    this.canvas.height = height;
    this.canvas.getContext('2d')!.putImageData(image, 0, 0);
    this.drawMarks();
  }

  // What the two ends of the colours mean.
  scaleText(): string {
    const full = this.fleet.heat.full_bytes;
    if (this.scale === 'stage') return `0 B to the most in the rank's ${this.fleet.stages.length > 0 ? 'stage' : 'fleet'}`;
    return this.scale === 'log' ? `${bytes(Math.round(full / 1000))} to ${bytes(full)}, logarithmic` : `0 B to ${bytes(full)}`;
  }

  mark(member: number | null): void {
    this.chosen = member;
    const at = this.rows.findIndex((row) => row.member === member);
    this.marker.hidden = at < 0;
    this.marker.style.top = `${at * this.rowHeight}px`;
    this.marker.style.height = `${this.rowHeight}px`;
    const scroll = this.box.parentElement!;
    const top = at * this.rowHeight;
    if (at >= 0 && (top < scroll.scrollTop || top + this.rowHeight > scroll.scrollTop + scroll.clientHeight))
      scroll.scrollTop = top - scroll.clientHeight / 2;
  }

  private get from(): number {
    return this.isCut ? this.firstUse : 0;
  }

  private brightness(share: number, most: number): number {
    if (this.scale === 'stage') return share / most;
    return this.scale === 'log' ? Math.log(Math.max(1, share)) / Math.log(1000) : share / 1000;
  }

  // The names of as many ranks as have room.
  private labels(): HTMLElement {
    const every = Math.ceil(kLabelHeight / this.rowHeight);
    const out = h('div', { class: 'heat-labels faint', 'aria-hidden': 'true' });
    this.rows.forEach((row, y) => {
      if (y % every !== 0 || y * this.rowHeight + kLabelHeight > this.rows.length * this.rowHeight + 4) return;
      const label = h('span', {}, this.fleet.ranks[row.member].name);
      label.style.top = `${y * this.rowHeight + this.rowHeight / 2}px`;
      out.appendChild(label);
    });
    return out;
  }

  // Where stages end, where ranks failed, and the scale of time.
  private drawMarks(): void {
    const { begin_us: begin, end_us: end, bins } = this.fleet.heat;
    const { from } = this;
    const span = begin === null || end === null ? null : end - begin;
    const lines = this.rows.flatMap((row, y) => {
      if (y === 0 || row.stage === this.rows[y - 1].stage) return [];
      const line = h('span', { class: 'heat-stage' });
      line.style.top = `${y * this.rowHeight - 1}px`;
      return [line];
    });
    const fails = this.fleet.failures.flatMap(({ member, after_us: after }) => {
      const y = this.rows.findIndex((row) => row.member === member);
      if (y < 0) return [];
      const shares = this.rows[y].reserved;
      let bin = shares.length;
      while (bin > 0 && shares[bin - 1] < 0) --bin;
      const share = after === null || span === null || span === 0 ? bin / bins : after / span;
      const sign = h('span', { class: 'heat-failure', title: `${this.fleet.ranks[member].name} failed` });
      sign.style.left = `${Math.max(0, Math.min(1, (share * bins - from) / (bins - from))) * 100}%`;
      sign.style.top = `${(y + 0.5) * this.rowHeight}px`;
      return [sign];
    });
    replace(this.marks, ...lines, ...fails);
    replace(this.times, ...[0, 0.25, 0.5, 0.75, 1].map((share) => {
      const place = (from + share * (bins - from)) / bins;
      return h('span', {}, span === null ? `${Math.round(100 * place)} %${share === 1 ? ' of its events' : ''}` : duration(span * place));
    }));
  }

  private rowAt(clientY: number): HeatRow | undefined {
    return this.rows[Math.floor((clientY - this.box.getBoundingClientRect().top) / this.rowHeight)];
  }

  private tell(event: PointerEvent): void {
    const row = this.rowAt(event.clientY);
    const { heat, ranks } = this.fleet;
    if (row === undefined) return;
    const box = this.box.getBoundingClientRect();
    const bin = Math.max(0, Math.min(heat.bins - 1, this.from + Math.floor(((event.clientX - box.left) / box.width) * (heat.bins - this.from))));
    const share = row[this.kind][bin];
    const where = heat.begin_us === null || heat.end_us === null ? `${Math.round((100 * bin) / heat.bins)} % of its events`
      : `after ${duration(((heat.end_us - heat.begin_us) * bin) / heat.bins)}`;
    this.tip.textContent = `${ranks[row.member].name}, ${where}: ${share === undefined || share < 0 ? 'not in its trace' : `${bytes(Math.round((share * heat.full_bytes) / 1000))} ${this.kind}`}`;
  }
}
