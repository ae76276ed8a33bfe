// Figures, the address of a view, and columns.
import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { decodeColumn } from '../../src/document/columns';
import { unpack } from '../../src/document/load';
import type { Card, Outcome } from '../../src/document/answers/dry-run';
import type { PageDocument } from '../../src/document/types';
import { nameOfInput, orderOfInputs, titleOfInputs } from '../../src/model/inputs';
import { clampWindow, zoomAt } from '../../src/panels/curve_input';
import { freePlace, stepStride, type Box } from '../../src/panels/curve_paint';
import { commandOf, inputOf } from '../../src/panels/fleet';
import type { Rank } from '../../src/document/answers/fleet';
import { accountLine, firstEnough, howItWent, unrun } from '../../src/panels/cards';
import { computes, fitVerdict, saved } from '../../src/panels/fit';
import { parseColour } from '../../src/view/palette';
import { byteTicks, bytes, count } from '../../src/view/format';
import { random } from '../made_document';
import { makeDryRun, makeFit } from '../made_parts';
import { wholeOf } from '../part';
import { fromHash, kStart, toHash, type View } from '../../src/view/state';

describe('inputs', () => {
  it('that failed stand first, and messages of one file are told apart', () => {
    const input = (name: string, headline: string): unknown => ({ name, rank: null, explanation: { headline } });
    const doc = { inputs: [input('log.txt', 'NO FAILURE  device 0'), input('log.txt', 'OUT OF MEMORY  device 1: tried to allocate 2.00 GiB, 1 free'),
      input('log.txt', 'OUT OF MEMORY  device 0: tried to allocate 3.00 GiB')] } as PageDocument;
    expect(orderOfInputs(doc)).toEqual([1, 2, 0]);
    expect(nameOfInput(doc, 1)).toBe('2: device 1: tried to allocate 2.00 GiB');
    expect(titleOfInputs(doc)).toBe('3 messages in one file');
  });
});

describe('a rank', () => {
  const rank = (file: string): Rank => ({ file, rank: 1 } as Rank);

  it('is found by the whole base name of its file', () => {
    const inputs = [{ name: '1.pickle', rank: null }, { name: 'rank1.pickle', rank: 1 }];
    expect(inputOf(inputs, rank('run/rank1.pickle'))).toBe(1);
    expect(inputOf(inputs, rank('run/1.pickle'))).toBe(0);
    expect(inputOf(inputs, rank('run/11.pickle'))).toBe(-1);
  });

  it('has a command that a shell takes', () => {
    expect(commandOf(rank("a b's.pickle"))).toBe("ashlar report 'a b'\\''s.pickle' -o rank1.html");
  });
});

describe('figures', () => {
  it('are those of the texts', () => {
    expect(bytes(0)).toBe('0 B');
    expect(bytes(1023)).toBe('1023 B');
    expect(bytes(669021184)).toBe('638.03 MiB');
    expect(bytes(-(2 ** 30))).toBe('-1.00 GiB');
    expect(count(1234567)).toBe('1,234,567');
    expect(count(12)).toBe('12');
  });

  it('make ticks of whole units', () => {
    expect(byteTicks(5 * 2 ** 30, 6)).toEqual([0, 1, 2, 3, 4, 5].map((i) => i * 2 ** 30));
  });
});

describe('the dark theme', () => {
  const sheet = readFileSync(new URL('../../src/styles/page.css', import.meta.url), 'utf8');
  const blocks = [...sheet.matchAll(/color-scheme: dark;([^}]*)\}/g)].map(([, text]) =>
    Object.fromEntries([...text.matchAll(/--([\w-]+): (#[\da-f]{6});/g)].map(([, name, value]) => [name, value])));
  const light = (text: string): number => {
    const [r, g, b] = parseColour(text).map((v) => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a: string, b: string): number => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);

  it('is the same where it is chosen and where the system asks for it', () => {
    expect(blocks.length).toBe(2);
    expect(blocks[0]).toEqual(blocks[1]);
  });

  it('has words of 4.5 : 1 and shapes of 3 : 1 on their ground, as WCAG AA asks', () => {
    expect(contrast('#ffffff', '#000000')).toBeCloseTo(21, 5);
    const [dark] = blocks;
    for (const name of ['ink', 'faint', 'accent', 'failure', 'good'])
      for (const ground of ['paper', 'ground', 'accent-ground']) expect(contrast(dark[name], dark[ground]), `${name} on ${ground}`).toBeGreaterThanOrEqual(4.5);
    for (const name of ['live', 'rounding', 'pending', 'stranded', 'free', 'private-free', 'reserved', 'outside'])
      expect(contrast(dark[name], dark.paper), name).toBeGreaterThanOrEqual(3);
  });
});

describe('numbers of steps', () => {
  it('have room, and are as many as have it', () => {
    for (let width = 0.001; width < 100; width *= 1.37) {
      const stride = stepStride(width, 21);
      expect(stride * width).toBeGreaterThanOrEqual(21);
      expect(String(stride)).toMatch(/^[125]0*$/);
      if (stride > 1) expect((stride / (String(stride).startsWith('5') ? 2.5 : 2)) * width).toBeLessThan(21);
    }
    expect(stepStride(0, 21)).toBeGreaterThan(1e6); // none of them has
  });
});

describe('words on a plot', () => {
  it('never overlap, and go where there is room', () => {
    const next = random(41);
    const taken: Box[] = [];
    let left = 0;
    for (let i = 0; i < 300; ++i) {
      const wanted = { left: 600 * next(), top: 280 * next(), width: 20 + 100 * next(), height: 16 };
      const box = freePlace(taken, wanted, 0, 300);
      if (box === null) {
        ++left;
        continue;
      }
      expect([box.left, box.width, box.height]).toEqual([wanted.left, wanted.width, wanted.height]);
      expect(box.top >= 0 && box.top + box.height <= 300).toBe(true);
      for (const other of taken)
        expect(box.left >= other.left + other.width || other.left >= box.left + box.width || box.top >= other.top + other.height || other.top >= box.top + box.height).toBe(true);
      taken.push(box);
    }
    expect(left).toBeGreaterThan(0);
    expect(freePlace([], { left: 5, top: 7, width: 10, height: 16 }, 0, 300)).toEqual({ left: 5, top: 7, width: 10, height: 16 });
  });
});

describe('the address', () => {
  const view: View = {
    ...kStart, moment: 812, from: 3.5, to: 90, colour: 'age', run: 4, overlays: [2, 4], block: 7, stack: 'a=b&c#d.py:3 f', pins: true, search: 'x y', theme: 'dark' };

  it('brings every part of a view back', () => {
    expect(fromHash(toHash(view, kStart), kStart)).toEqual(view);
    expect(toHash(kStart, kStart)).toBe('');
    const start = { ...kStart, moment: 99, overlays: [1] };
    for (const part of [{ moment: 0 }, { overlays: [] }, { block: null }]) {
      const there = { ...start, ...part };
      expect(fromHash(toHash(there, start), start)).toEqual(there);
    }
  });

  it('leaves what a broken one does not tell', () => {
    for (const hash of ['#', '#m', '#m=%', '#=3', '#m=-4&c=purple&x=9', '#a=NaN&o=x.y', 'rubbish'])
      expect(() => fromHash(hash, kStart)).not.toThrow();
    expect(fromHash('#m=-4&c=purple', kStart)).toEqual({ ...kStart, moment: 0 });
  });
});

describe('windows', () => {
  it('stay inside the whole', () => {
    const whole = { from: 0, to: 100 };
    expect(clampWindow({ from: -20, to: 20 }, whole)).toEqual({ from: 0, to: 40 });
    expect(clampWindow({ from: 90, to: 130 }, whole)).toEqual({ from: 60, to: 100 });
    expect(clampWindow({ from: -50, to: 400 }, whole)).toEqual(whole);
    expect(clampWindow(zoomAt({ from: 0, to: 100 }, 50, 1e-9), whole).to - 50).toBeLessThan(2.1);
  });
});

describe('columns', () => {
  const ofBytes = (array: ArrayBufferView): ArrayBuffer => array.buffer.slice(0) as ArrayBuffer;
  it('are base + scale * raw, summed where they are differences', () => {
    const plain = { blob: 0, offset: 0, base: 0, scale: 1, delta: false };
    expect([...decodeColumn({ ...plain, type: 'u16', count: 3 }, ofBytes(Uint16Array.of(1, 2, 65535)))]).toEqual([1, 2, 65535]);
    expect([...decodeColumn({ ...plain, type: 'u8', count: 3, base: 10, scale: 512 }, ofBytes(Uint8Array.of(0, 1, 255)))])
      .toEqual([10, 522, 130570]);
    expect([...decodeColumn({ ...plain, type: 'i32', count: 4, delta: true, base: 5 }, ofBytes(Int32Array.of(-1, 1, 1, 1)))]).toEqual([4, 5, 6, 7]);
    expect([...decodeColumn({ ...plain, type: 'i8', count: 3, delta: true, scale: 512, base: 1024 }, ofBytes(Int8Array.of(0, -2, 127)))])
      .toEqual([1024, 0, 65024]);
    expect([...decodeColumn({ ...plain, type: 'u32', count: 3, delta: true }, ofBytes(Uint32Array.of(3, 0xffffffff, 5)))])
      .toEqual([3, 4294967298, 4294967303]);
    expect([...decodeColumn({ ...plain, type: 'f64', count: 2, offset: 8 }, ofBytes(Float64Array.of(1, 2 ** 52, 3)))]).toEqual([2 ** 52, 3]);
  });

  it('come out of gzip in base64', async () => {
    const data = Uint8Array.from({ length: 5000 }, (_, i) => i % 251);
    expect(new Uint8Array(await unpack(gzipSync(data).toString('base64')))).toEqual(data);
  });
});

describe('cards', () => {
  it('the first that is enough is the smallest, under the plainest setting', () => {
    const no: Outcome = { conf: '', fits: false, headroom_bytes: null, retries: 0, failed_step: 1, failed_at: 'step 1' };
    const yes: Outcome = { ...no, fits: true, headroom_bytes: 5 };
    const card = (name: string, a: Outcome, b: Outcome | null, c: Outcome | null) =>
      wholeOf<Card>({ card: name, ran_as: name, has_verdict: true, has_kernels: null, total_bytes: 1, allocator_bytes: 1, peak_allocated_bytes: 1, default: a, expandable: b, best_found: c });
    expect(firstEnough([card('A', no, null, null), card('B', no, yes, yes), card('C', yes, yes, yes)])).toMatchObject({ card: { card: 'B' }, how: 'expandable_segments:True' });
    expect(firstEnough([card('A', no, null, null)])).toBeNull();
    const other = { ...card('A', { ...yes, fits: null }, null, null), ran_as: 'B', has_verdict: false };
    expect(firstEnough([other])).toBeNull();
    expect(firstEnough([other, card('B', yes, yes, yes)])).toMatchObject({ card: { card: 'B' } });
    expect(firstEnough([{ ...card('A', yes, yes, yes), has_kernels: false }, card('B', yes, yes, yes)])).toMatchObject({ card: { card: 'B' } });
    expect(unrun(other)).toBe('as B would run it: 5 B to spare');
    expect(unrun({ ...other, default: { ...no, fits: null } })).toBe('as B would run it: fails: step 1');
  });

  it('say of a program that did not end well with what it ended', () => {
    const run = makeDryRun();
    expect(howItWent({ ...run, fits_unless: null })).toBe('; no request failed');
    expect(howItWent(run)).toBe('; no request failed, and it fits unless NCCL takes more than 1.00 GiB');
    expect(run.account?.parts.map(accountLine)).toEqual(["PyTorch's allocator: 20.00 GiB (measured: as it asked the device)",
      'NCCL: 0 B to 2.00 GiB on top (computed: its rules)']);
    expect(howItWent({ ...run, fits: null, ended_early: { by: 'signal', what: 'signal 9 (SIGKILL)' } }))
      .toBe('; the program ended before its end, with signal 9 (SIGKILL): this is what was seen until then');
    expect(howItWent({ ...run, fits: false, ended_early: { by: 'exception', what: 'OutOfMemoryError: CUDA out of memory. Tried to allocate 32.00 MiB. GPU 0 has' } }))
      .toBe('; a request failed; the program ended before its end, with OutOfMemoryError: CUDA out of memory: this is what was seen until then');
  });

  it('say of changes what each saves, and where it fails', () => {
    const fit = makeFit();
    expect(fitVerdict(fit.as_it_is)).toBe('fails at step 2');
    expect(fitVerdict({ ...fit.as_it_is, failed_step: null })).toBe('fails');
    expect(fitVerdict({ ...fit.as_it_is, is_over_host: true })).toBe('fails: the host');
    const work = { operations: 300, narrow_operations: 0, memory_bytes: 0, bus_bytes: 0 };
    expect(computes(fit, { ...fit.rows[0], work })).toBe('');
    expect(computes({ ...fit, as_it_is: { ...fit.as_it_is, work } }, { ...fit.rows[0], work: { ...work, operations: 400 } })).toBe('× 1.33');
    expect(fitVerdict(fit.rows[1])).toBe('it ended with exit code 1');
    expect(saved(fit, fit.as_it_is)).toBe('');
    expect(saved(fit, fit.rows[0])).toBe('25 %');
    expect(saved(fit, { ...fit.rows[0], peak_reserved_bytes: 2 ** 36 })).toBe('-100 %');
  });
});
