// Paints the lines of runs into pixels, column by column, and lays them on the plot as one picture: the cost is that of the
// pixels, whatever the number of events.
import { columnBounds, columnRanges } from '../model/columns_of_pixels';
import { cost } from '../model/cost';
import type { RunData, Sum } from '../model/run_data';
import { pixel, type Rgb } from '../view/palette';
import type { Frame } from './curve_paint';

export interface Line {
  sum: Sum;
  colour: Rgb;
  fill: number; // opacity of the area below; 0: a line alone
  dash: boolean;
  thick: number; // CSS pixels
}

interface Colour {
  rgb: Rgb;
  alpha: number;
}

const over = (below: Colour, rgb: Rgb, alpha: number): Colour => {
  const sum = alpha + below.alpha * (1 - alpha);
  return { rgb: below.rgb.map((v, i) => (rgb[i] * alpha + v * below.alpha * (1 - alpha)) / Math.max(sum, 1e-9)) as Rgb, alpha: sum };
};

const rgba = ({ rgb, alpha }: Colour): number => ((pixel(rgb.map(Math.round) as Rgb) & 0xffffff) | (Math.round(alpha * 255) << 24)) >>> 0;

export class CurvePixels {
  private image = new ImageData(1, 1);
  private pixels = new Uint32Array(1);
  private readonly canvas = document.createElement('canvas');
  private context: CanvasRenderingContext2D | null = null;
  private bounds = new Int32Array(1);
  private low: Float64Array[] = [];
  private high: Float64Array[] = [];

  begin(frame: Frame): void {
    const { width, height } = frame;
    if (this.image.width !== width || this.image.height !== height) {
      this.image = new ImageData(width, height);
      this.pixels = new Uint32Array(this.image.data.buffer);
      this.canvas.width = width;
      this.canvas.height = height;
      this.bounds = new Int32Array(width + 1);
      this.low = [];
      this.high = [];
    } else {
      this.pixels.fill(0);
    }
  }

  // The lines of a run, over the window of the frame.
  add(frame: Frame, data: RunData, lines: Line[]): void {
    const { width: columns, height, most } = frame;
    const places = data.places(frame.axis);
    columnBounds(places, frame.from, frame.to, columns, this.bounds);
    const past = Math.ceil(((places[places.length - 1] - frame.from) / (frame.to - frame.from)) * columns) + 1;
    const shown = lines.filter((line) => data.sums[line.sum] !== undefined);
    shown.forEach((line, k) => {
      this.low[k] ??= new Float64Array(columns);
      this.high[k] ??= new Float64Array(columns);
      columnRanges(data.sums[line.sum]!, this.bounds, columns, data.count, this.low[k], this.high[k]);
      if (past < columns) this.high[k].fill(NaN, Math.max(0, past), columns);
    });
    this.fill(frame, shown);
    shown.forEach((line, k) => this.stroke(frame, line, this.low[k], this.high[k], height / most));
  }

  // The areas below lines, mixed where they lie over one another.
  private fill(frame: Frame, lines: Line[]): void {
    const { width, height, most } = frame;
    const { pixels } = this;
    const filled = lines.flatMap((line, k) => (line.fill > 0 ? [k] : []));
    if (filled.length === 0) return;
    const mixed = Uint32Array.from({ length: 1 << filled.length }, (_, mask) => rgba(filled.reduce(
      (below, k, i) => ((mask >> i) & 1 ? over(below, lines[k].colour, lines[k].fill) : below), { rgb: [0, 0, 0], alpha: 0 } as Colour)));
    const tops = new Int32Array(filled.length);
    for (let c = 0; c < width; ++c) {
      for (let i = 0; i < tops.length; ++i) {
        const up = this.high[filled[i]][c];
        tops[i] = up === up ? Math.max(0, Math.round(height - (up * height) / most)) : height; // NaN is not itself
      }
      // From the top down: at each step the next line whose area begins.
      let y = 0;
      for (let mask = 0; y < height; ) {
        let next = -1;
        for (let i = 0; i < tops.length; ++i)
          if (((mask >> i) & 1) === 0 && (next < 0 || tops[i] < tops[next])) next = i;
        const end = next < 0 ? height : tops[next];
        const value = mixed[mask];
        if (value !== 0) for (let at = y * width + c, last = end * width; at < last; at += width) pixels[at] = value;
        y = end;
        if (next >= 0) mask |= 1 << next;
      }
    }
  }

  end(frame: Frame): void {
    cost.pixels += this.pixels.length;
    this.context ??= this.canvas.getContext('2d', { willReadFrequently: true })!;
    this.context.putImageData(this.image, 0, 0);
    frame.ctx.drawImage(this.canvas, frame.left, frame.top);
  }

  private stroke(frame: Frame, line: Line, low: Float64Array, high: Float64Array, perByte: number): void {
    const { width, height, ratio } = frame;
    const { pixels } = this;
    const value = pixel(line.colour);
    const thick = Math.max(1, Math.round(line.thick * ratio));
    const dash = Math.round(6 * ratio);
    for (let c = 0; c < width; ++c) {
      if (Number.isNaN(high[c]) || (line.dash && c % dash >= dash * 0.66)) continue;
      const top = Math.max(0, Math.round(height - high[c] * perByte - thick / 2));
      const bottom = Math.min(height, Math.max(top + thick, Math.round(height - low[c] * perByte + thick / 2)));
      for (let y = top; y < bottom; ++y) pixels[y * width + c] = value;
    }
  }
}
