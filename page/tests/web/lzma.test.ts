// What xz packs is unpacked byte for byte, and what is no such file is refused.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { packLzma } from '../../pack_lzma';
import { unpackLzma } from '../../src/web/lzma';
import { kDist, kOneFile } from './web_page';

// The same bytes at each run, with copies near and far in them.
function mixed(size: number): Uint8Array {
  const out = new Uint8Array(size);
  let seed = 7;
  const random = (below: number): number => {
    seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff;
    return (seed >> 8) % below;
  };
  for (let i = 0; i < size;) {
    const length = 1 + random(400);
    const from = i === 0 ? -1 : random(3) === 0 ? Math.max(0, i - 1 - random(8)) : random(i);
    const isCopy = from >= 0 && random(3) > 0;
    for (let k = 0; k < length && i < size; ++k, ++i) out[i] = isCopy ? out[from + k] : random(256);
  }
  return out;
}

const same = (a: Uint8Array, b: Uint8Array): boolean => Buffer.compare(a, b) === 0;

it.each(['lc=4,pb=0', 'lc=3,lp=0,pb=2', 'lc=0,lp=4,pb=4', 'lc=1,lp=2,pb=1'])('with %s', (properties) => {
  for (const bytes of [new Uint8Array([]), new Uint8Array([65]), new Uint8Array(100000), mixed(300), mixed(300000)])
    expect(same(unpackLzma(packLzma(bytes, properties)), bytes), `${bytes.length} bytes`).toBe(true);
});

it('refuses what is cut short, damaged or something else', () => {
  const bytes = mixed(20000);
  const packed = packLzma(bytes);
  for (const cut of [0, 5, 17, 100, packed.length >> 1]) expect(() => unpackLzma(packed.subarray(0, cut)), `${cut}`).toThrow(/packed/);
  expect(() => unpackLzma(new TextEncoder().encode('<!doctype html><title>not found</title>'))).toThrow('not packed by LZMA');
  let refused = 0;
  for (let at = 14; at < packed.length - 16; at += 97) { // what ends it lies behind the last byte
    const damaged = Uint8Array.from(packed);
    damaged[at] ^= 0x55;
    try {
      expect(same(unpackLzma(damaged), bytes)).toBe(false);
    } catch (error) {
      expect((error as Error).message).toMatch(/damaged|cut short/);
      ++refused;
    }
  }
  expect(refused).toBeGreaterThan(0);
});

it('has the module in the one file as it lies beside the page of a host', () => {
  const packed = /<script type="application\/octet-stream" id="ashlar-module">([^<]*)<\/script>/.exec(readFileSync(kOneFile, 'utf8'))![1];
  expect(same(unpackLzma(Buffer.from(packed, 'base64')), readFileSync(join(kDist, 'web/ashlar_web.wasm')))).toBe(true);
});
