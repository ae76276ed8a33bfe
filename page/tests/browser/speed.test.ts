// Limits of speed, by Chromium's own trace. In CPU time of the main thread, so that what else the machine does counts little;
// a limit is for all but one frame in twenty, and the greatest is printed.
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { launch } from './browser';
import { framesOf } from './frames';
import { measure } from './measure';
import { pagePath } from './pages';

let browser: Browser;
beforeAll(async () => { browser = await launch(); });
afterAll(() => browser.close());

it('counts the tasks of a frame', () => {
  const task = (ts: number, tdur: number) => ({ name: 'RunTask', cat: '', ph: 'X', pid: 1, tid: 1, ts, dur: 2 * tdur, tdur });
  const commit = (ts: number) => ({ name: 'Commit', cat: '', ph: 'X', pid: 1, tid: 1, ts });
  const frames = framesOf([commit(10), task(11, 3000), task(4000, 6000), commit(9000), task(9001, 1000), commit(11000)]);
  expect(frames).toMatchObject({ frames: 2, mostMs: 9, medianMs: 9 });
});

// Timed on a machine that does nothing else, ASHLAR_PAGE_SPEED=1; anywhere else the figures are printed.
const limitMs = process.env['ASHLAR_PAGE_SPEED'] ? 8 : Infinity;
it('a million events are drawn frame by frame', { timeout: 120000 }, async () => {
  const measured = await measure(browser, pagePath('made_million'));
  console.log(JSON.stringify(measured));
  for (const work of ['zoom', 'pan', 'slide', 'play'] as const) {
    expect(measured[work].frames).toBeGreaterThan(20);
    expect(measured[work].p95Ms, work).toBeLessThanOrEqual(limitMs);
  }
});
