// A tab whose memory ends takes the last events, and says so; a run that takes long is cancelled. The page that is opened
// here is a copy whose module may grow to little, so that this takes seconds.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { gunzipSync, gzipSync } from 'node:zlib';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { launch } from '../browser/browser';
import { give, kExample, kOneFile, Scratch, textOf, visitPage } from './web_page';

let browser: Browser;
const scratch = new Scratch();
beforeAll(async () => { browser = await launch(); });
afterAll(async () => { await browser.close(); scratch.end(); });

const kMostBytes = '4294901760'; // what the module's script lets its memory grow to

// The page with a module that may grow to so many MiB.
function smallPage(mib: number): string {
  const page = readFileSync(kOneFile, 'utf8');
  const found = /<script type="application\/octet-stream" id="ashlar-worker">([^<]*)<\/script>/.exec(page)!;
  const script = gunzipSync(Buffer.from(found[1], 'base64')).toString('utf8');
  expect(script).toContain(kMostBytes);
  const smaller = gzipSync(script.replaceAll(kMostBytes, String(mib * 2 ** 20))).toString('base64');
  const out = join(scratch.folder, `small_${mib}.html`);
  writeFileSync(out, page.replace(found[1], () => smaller));
  return pathToFileURL(out).href;
}

// So many requests, of which a hundred live at once.
function traceOf(requests: number): string {
  const lines: string[] = [];
  for (let i = 0; i < requests; ++i) {
    lines.push(`a ${i + 1} ${512 * (1 + (i * 7919) % 4000)} 0`);
    if (i >= 100) lines.push(`f ${i - 99}`);
  }
  const file = join(scratch.folder, `${requests}.trace`);
  writeFileSync(file, `${lines.join('\n')}\n`);
  return file;
}

it('takes the last events where not all fit, and says so', async () => {
  const { page, problems } = await visitPage(browser, { url: smallPage(190) });
  await give(page, traceOf(1_000_000));
  const note = page.getByRole('region', { name: 'What was read' });
  await expect.poll(() => note.textContent(), { timeout: 150000 }).toMatch(/this is of the last (1,000,000|200,000) events/);
  expect(await textOf(page, 'ashlar.txt')).toContain('--max-events');
  expect(problems).toEqual([]);
  await page.context().close();
});

it('says that a file is too large, and the tab lives on', async () => {
  const { page } = await visitPage(browser, { url: smallPage(24) });
  await give(page, traceOf(1_000_000));
  await expect.poll(() => page.getByRole('alert').allTextContents(), { timeout: 150000 }).toEqual([expect.stringContaining('too large for a browser')]);
  await give(page, kExample);
  expect(await textOf(page, 'ashlar.txt')).toContain('VERDICT');
  await page.context().close();
});

it('is cancelled, and takes the next file', async () => {
  const { page } = await visitPage(browser);
  await give(page, traceOf(1_000_000));
  const cancel = page.getByRole('button', { name: 'Cancel' });
  await cancel.click();
  await expect.poll(() => cancel.isVisible()).toBe(false);
  expect(await page.getByRole('alert').count()).toBe(0);
  await give(page, kExample);
  expect(await textOf(page, 'ashlar.txt')).toContain('VERDICT');
  await page.context().close();
});
