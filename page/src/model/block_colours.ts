// The colour of each block by name, stack, phase, size, age or text, as pixels. What does not change with the moment is kept.
import type { Input } from '../document/types';
import { kColours, type ColourBy } from '../view/state';
import { kCategories, pixel, sequence, type Rgb, type Theme } from '../view/palette';
import { bytes as bytesText, count } from '../view/format';
import type { BlockTable } from './blocks';
import type { RunData } from './run_data';

export const kColourNames: Record<ColourBy, string> = {
  state: 'state', name: "holder's name", stack: 'line', phase: 'phase', size: 'size', age: 'age', text: 'annotation' };

// The colours that a run's blocks can have.
export const coloursOf = (data: RunData, input: Input): ColourBy[] => kColours.filter((by) =>
  (by !== 'phase' || data.run.phases.length > 0) && (by !== 'text' || input.texts.length > 0) && (by !== 'name' || input.holders.length > 0)
  && (by !== 'stack' || input.stacks.labels.length > 0));

export interface LegendEntry {
  colour: Rgb;
  text: string;
}

const kSteps = 16; // of a sequence

// What has no colour of its own.
const kOthers = { stack: 'other lines', phase: 'no phase', name: 'other names, or none', text: 'no annotation' };

export class BlockColours {
  private kept: Uint32Array | null = null;
  private keptBy: ColourBy | null = null;
  private readonly ranks: Map<string, number>;
  private phaseOf: Uint8Array | null = null;
  private readonly phaseNames: string[];
  private readonly ramp: Rgb[] = Array.from({ length: kSteps }, (_, i) => sequence(i / (kSteps - 1)));

  // ranks: the lines that get a colour of their own, by place; see rankLabels.
  constructor(private readonly data: RunData, private readonly blocks: BlockTable, private readonly input: Input,
    labels: string[]) {
    this.ranks = new Map(labels.map((label, i) => [label, i]));
    this.phaseNames = [...new Set(data.run.phases.map((phase) => phase.name))];
  }

  forget(): void {
    this.kept = null;
  }

  // A function from a block to its pixel at a moment.
  painter(by: ColourBy, moment: number, theme: Theme): (block: number) => number {
    const live = pixel(theme.live);
    const pending = pixel(theme.pending);
    const { blocks } = this;
    if (by === 'state') return (block) => (moment >= blocks.freed[block] ? pending : live);
    if (by === 'age') {
      const ramp = this.ramp.map(pixel).reverse();
      const most = Math.log2(this.data.count + 1);
      return (block) => ramp[Math.min(kSteps - 1, Math.floor((Math.log2(moment - blocks.alloc[block] + 1) / most) * kSteps))];
    }
    if (this.kept === null || this.keptBy !== by) {
      this.kept = new Uint32Array(blocks.count);
      this.keptBy = by;
    }
    const kept = this.kept;
    const other = pixel(theme.faint);
    return (block) => kept[block] || (kept[block] = this.colourOf(by, block, other));
  }

  legend(by: ColourBy, theme: Theme): LegendEntry[] {
    if (by === 'state') return [{ colour: theme.live, text: 'live' }, { colour: theme.pending, text: 'pending (striped)' }];
    if (by === 'age')
      return [{ colour: this.ramp[kSteps - 1], text: 'new' }, { colour: this.ramp[kSteps / 2], text: `${count(Math.sqrt(this.data.count))} events old` },
        { colour: this.ramp[0], text: 'from the start' }];
    if (by === 'size')
      return [512, 2 ** 16, 2 ** 20, 2 ** 24, 2 ** 28].map((size) => ({ colour: this.ramp[this.sizeStep(size)], text: bytesText(size) }));
    const names = by === 'stack' ? [...this.ranks.keys()] : by === 'phase' ? this.phaseNames : by === 'name' ? this.input.holders : this.input.texts;
    const entries = names.slice(0, kCategories.length - 1).map((text, i) => ({ colour: kCategories[i], text }));
    return [...entries, { colour: theme.faint, text: kOthers[by] }];
  }

  phase(block: number): string | null {
    const place = this.phases()[this.blocks.alloc[block]];
    return place === 255 ? null : this.phaseNames[place];
  }

  private colourOf(by: ColourBy, block: number, other: number): number {
    const category = (i: number | undefined): number =>
      i === undefined || i < 0 || i >= kCategories.length - 1 ? other : pixel(kCategories[i]);
    switch (by) {
      case 'stack': {
        const stack = this.blocks.stack[block];
        return stack < 0 ? other : category(this.ranks.get(this.input.stacks.labels[stack]));
      }
      case 'name': return category(this.blocks.holder?.[block]);
      case 'phase': return category(this.phases()[this.blocks.alloc[block]]);
      case 'text': {
        const text = this.blocks.text === null ? -1 : this.blocks.text[block];
        return text < 0 ? other : category(text % (kCategories.length - 1));
      }
      default: return pixel(this.ramp[this.sizeStep(this.blocks.size[block])]);
    }
  }

  private sizeStep(size: number): number {
    return Math.max(0, Math.min(kSteps - 1, Math.floor(((Math.log2(size) - 9) / 22) * kSteps)));
  }

  // The innermost phase of each moment, by place in the names; 255: none.
  private phases(): Uint8Array {
    if (this.phaseOf === null) {
      this.phaseOf = new Uint8Array(this.data.count + 1).fill(255);
      for (const phase of this.data.run.phases) {
        const place = this.phaseNames.indexOf(phase.name);
        if (place < 255) this.phaseOf.fill(place, phase.begin, phase.end);
      }
    }
    return this.phaseOf;
  }
}
