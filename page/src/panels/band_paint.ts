// Paints the blocks of a run over time into a picture, a column of pixels at a time, each at the moment in it at which most is
// allocated. Dear, so a piece at a time while nothing else happens; a frame lays the last picture on the plot, stretched to the window.
import type { LiveRun } from '../app';
import { BlockBands } from '../model/block_bands';
import { columnBounds } from '../model/columns_of_pixels';
import { cost } from '../model/cost';
import { leftOutBytes } from '../model/left_out';
import type { Axis } from '../model/run_data';
import { blend, pixel, type Theme } from '../view/palette';
import type { Frame } from './curve_paint';

export interface BandLook {
  colour: (block: number) => number;
  isShown: (block: number) => boolean;
  isMarked: ((block: number) => boolean) | null; // others fade
  selected: number | null;
  theme: Theme;
}

interface Window2 {
  axis: Axis;
  from: number;
  to: number;
  width: number;
  height: number;
  most: number;
}

const kPieceMs = 5;
const kEdge = 5; // pixels from which on a band has an edge

export class BandPainter {
  readonly bands: BlockBands;
  private image = new ImageData(1, 1);
  private pixels = new Uint32Array(1);
  private readonly canvas = document.createElement('canvas');
  private shown: Window2 | null = null; // of the picture that is laid on the plot
  private wanted: Window2 | null = null; // of the one that is being painted
  private look: BandLook | null = null;
  private moments: Int32Array = new Int32Array(0); // of each column; -1: nothing
  private column = 0;

  constructor(private readonly run: LiveRun) {
    const { data, memory: { blocks } } = run;
    this.bands = new BlockBands(blocks, data.time ?? data.x, leftOutBytes(data.run, data.sums.allocated!.values, blocks));
  }

  // A picture anew: it takes the place of the last one when it is done.
  begin(frame: Frame, look: BandLook): void {
    const { axis, from, to, width, height, most } = frame;
    const { data } = this.run;
    this.wanted = { axis, from, to, width, height, most };
    this.look = look;
    this.image = new ImageData(width, height);
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.moments = this.momentsOf(data.places(axis), this.wanted);
    this.column = 0;
    this.bands.show(look.isShown);
    this.bands.begin(Math.max(0, this.moments.find((moment) => moment >= 0) ?? 0));
  }

  // Some columns; true when all are painted.
  paintSome(all = false): boolean {
    const { wanted } = this;
    if (wanted === null) return true;
    const end = performance.now() + kPieceMs;
    while (this.column < wanted.width) {
      if (this.moments[this.column] >= 0) this.paintColumn(this.column, wanted);
      ++this.column;
      if (!all && this.column % 8 === 0 && performance.now() > end) return false;
    }
    this.canvas.width = wanted.width;
    this.canvas.height = wanted.height;
    this.canvas.getContext('2d')!.putImageData(this.image, 0, 0);
    cost.pixels += this.pixels.length;
    this.shown = wanted;
    this.wanted = null;
    return true;
  }

  draw(frame: Frame): void {
    const { shown } = this;
    if (shown === null || shown.axis !== frame.axis) return;
    const perPlace = frame.width / (frame.to - frame.from);
    frame.ctx.imageSmoothingEnabled = false;
    const height = (frame.height * shown.most) / frame.most;
    frame.ctx.drawImage(this.canvas, frame.left + (shown.from - frame.from) * perPlace, frame.top + frame.height - height, (shown.to - shown.from) * perPlace, height);
  }

  // What is drawn at a place and a height.
  pick(place: number, bytes: number): { moment: number; found: number | 'others' | null } | null {
    const { shown } = this;
    if (shown === null || this.wanted !== null) return null;
    const moment = this.moments[Math.floor(((place - shown.from) / (shown.to - shown.from)) * shown.width)] ?? -1;
    if (moment < 0) return null;
    if (moment < this.bands.moment) this.bands.begin(moment);
    else this.bands.forward(moment);
    return { moment, found: this.bands.at(bytes) };
  }

  // Of each column the moment at which most is allocated; where none begins in it, that of the one before.
  private momentsOf(places: Float64Array, { from, to, width }: Window2): Int32Array {
    const bounds = new Int32Array(width + 1);
    columnBounds(places, from, to, width, bounds);
    const allocated = this.run.data.sums.allocated!.values;
    const past = Math.ceil(((places[places.length - 1] - from) / (to - from)) * width) + 1;
    return Int32Array.from({ length: width }, (_, c) => {
      if (c >= past) return -1;
      let best = bounds[c] < bounds[c + 1] ? bounds[c] : bounds[c] - 1;
      for (let m = best + 1; m < bounds[c + 1]; ++m) if (allocated[m] > allocated[best]) best = m;
      return best;
    });
  }

  private paintColumn(column: number, { width, height, most }: Window2): void {
    const { bands, pixels } = this;
    const { colour, isMarked, selected, theme } = this.look!;
    const { size } = this.run.memory.blocks;
    const [paper, ink, other] = [pixel(theme.paper), pixel(theme.ink), pixel(theme.free)];
    bands.forward(this.moments[column]);
    const rowOf = (bytes: number): number => Math.max(0, Math.round(height * (1 - bytes / most)));
    let bytes = 0;
    let low = height; // rows from here down are painted
    const fill = (value: number, edge: number): void => {
      const top = rowOf(bytes);
      for (let row = top, at = top * width + column; row < low; ++row, at += width) pixels[at] = value;
      if (low - top >= kEdge) pixels[top * width + column] = edge;
      low = Math.min(low, top);
    };
    for (let block = bands.first; block >= 0; block = bands.next[block]) {
      bytes += size[block];
      if (low <= 0 || (bytes / most) * height < height - low + 0.5) continue; // thinner than what is left of a row
      let value = colour(block);
      if (block === selected) value = ink;
      else if (isMarked !== null && !isMarked(block)) value = blend(value, paper, 3);
      else if (block & 1) value = blend(value, paper, 0.5);
      fill(value, blend(value, paper, 1.5));
    }
    bytes += bands.others;
    if (bands.others > 0) fill(other, other);
  }
}
