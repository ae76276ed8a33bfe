// Paints the lines of runs into pixels, column by column, and lays them on the plot as one picture: the cost is that of the
// pixels, whatever the number of events.
import { columnBounds, columnRanges } from '../model/columns_of_pixels';
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
    const { width, height, most } = frame;
    const columns = width;
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
    const fills = shown.flatMap((line, k) => (line.fill > 0 ? [{ line, k }] : []));
    const mixed = Array.from({ length: 1 << fills.length }, (_, mask) => rgba(fills.reduce(
      (below, { line }, i) => ((mask >> i) & 1 ? over(below, line.colour, line.fill) : below), { rgb: [0, 0, 0], alpha: 0 } as Colour)));
    const perByte = height / most;
    const { pixels } = this;
    if (fills.length > 0)
      for (let c = 0; c < columns; ++c) {
        let mask = 0;
        let y = 0;
        // From the top down: at each step the next line whose area begins.
        while (mask + 1 < mixed.length) {
          let next = -1;
          let top = height;
          for (let i = 0; i < fills.length; ++i) {
            if ((mask >> i) & 1) continue;
            const up = this.high[fills[i].k][c];
            const at = Number.isNaN(up) ? height : Math.max(0, Math.round(height - up * perByte));
            if (next < 0 || at < top) [next, top] = [i, at];
          }
          const value = mixed[mask];
          if (value !== 0) for (; y < top; ++y) pixels[y * width + c] = value;
          y = top;
          mask |= 1 << next;
        }
        const value = mixed[mask];
        for (; y < height; ++y) pixels[y * width + c] = value;
      }
    shown.forEach((line, k) => this.stroke(frame, line, this.low[k], this.high[k], perByte));
  }

  end(frame: Frame): void {
    this.canvas.getContext('2d', { willReadFrequently: true })!.putImageData(this.image, 0, 0);
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
