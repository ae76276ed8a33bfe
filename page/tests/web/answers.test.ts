// The page answers as the program does: from a file, from a host, of one file and of several.
import { copyFileSync, mkdirSync, openSync, closeSync, ftruncateSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { launch } from '../browser/browser';
import { answerOf, expectSame, give, Host, kDist, kExample, kMessage, program, Scratch, textOf, visitPage } from './web_page';

const folder = dirname(kExample);
let browser: Browser;
const scratch = new Scratch();
beforeAll(async () => { browser = await launch(); });
afterAll(async () => { await browser.close(); scratch.end(); });

it('answers as the program from a file, and asks nothing of a network', async () => {
  const { page, requests, problems } = await visitPage(browser);
  await give(page, kExample);
  const text = await textOf(page, 'ashlar.txt');
  expect(text).toContain('VERDICT');
  expectSame(text, program(['explain', 'training_oom.pickle'], folder));
  expectSame(await answerOf(page, 'JSON', 'ashlar.json'), program(['explain', '--json', 'training_oom.pickle'], folder));
  expectSame(await answerOf(page, 'Markdown', 'ashlar.md'), program(['explain', '--format', 'markdown', 'training_oom.pickle'], folder));
  expect([requests, problems]).toEqual([[], []]);
  await page.context().close();
});

it('shows the report page in a frame', async () => {
  const { page, requests, problems } = await visitPage(browser);
  await give(page, kExample);
  await page.getByRole('tab', { name: 'Report page' }).click();
  const frame = page.frameLocator('iframe.report');
  await expect.poll(() => frame.locator('html').getAttribute('data-ready'), { timeout: 30000 }).toBe('all');
  expect(await frame.locator('h1').textContent()).toBe('training_oom.pickle');
  const download = page.waitForEvent('download');
  await page.getByRole('link', { name: 'Save as a file' }).click();
  expect((await download).suggestedFilename()).toBe('report.html');
  expect([requests, problems]).toEqual([[], []]);
  await page.context().close();
});

it('tries settings, and takes what is known besides', async () => {
  const { page } = await visitPage(browser);
  await give(page, kExample);
  await page.getByRole('tab', { name: 'What if' }).click();
  await page.getByLabel('Settings to try').fill('max_split_size_mb:128');
  await page.getByRole('button', { name: 'Try them' }).click();
  expectSame(await textOf(page, 'sweep.txt'), program(['sweep', '--confs', 'max_split_size_mb:128', 'training_oom.pickle'], folder));
  await page.getByText('What is known besides').click();
  await page.getByLabel("The GPU's memory").fill('12GiB');
  await page.getByRole('button', { name: 'Explain again' }).click();
  await expect.poll(() => textOf(page, 'ashlar.txt'), { timeout: 30000 }).toBe(program(['explain', '--capacity', '12GiB', 'training_oom.pickle'], folder) ?? expect.anything());
  await page.getByLabel("The GPU's memory").fill('much');
  await page.getByRole('button', { name: 'Explain again' }).click();
  expect(await page.getByRole('alert').textContent()).toContain('capacity:');
  await page.context().close();
});

it('takes a message with a snapshot, and compares two', async () => {
  const { page } = await visitPage(browser);
  await give(page, [kMessage, kExample]);
  expectSame(await answerOf(page, 'JSON', 'ashlar.json'), program(['explain', '--json', 'oom_message.txt', 'training_oom.pickle'], folder));
  writeFileSync(join(scratch.folder, 'a.trace'), 'a 1 1048577 0\na 2 30000000 0\nf 1\n');
  writeFileSync(join(scratch.folder, 'b.trace'), 'a 1 1048577 0\na 2 90000000 0\n');
  await give(page, [join(scratch.folder, 'a.trace'), join(scratch.folder, 'b.trace')]);
  await expect.poll(() => page.getByRole('tab', { name: 'What grew' }).count(), { timeout: 30000 }).toBe(1);
  expectSame(await answerOf(page, 'What grew', 'diff.txt'), program(['diff', 'a.trace', 'b.trace'], scratch.folder));
  await page.context().close();
});

it('takes a folder of ranks in the order of their numbers, without what is no input', async () => {
  const ranks = join(scratch.folder, 'ranks');
  mkdirSync(ranks);
  for (const rank of [10, 2, 0]) copyFileSync(kExample, join(ranks, `rank${rank}.pickle`));
  writeFileSync(join(ranks, '.hidden'), 'x');
  writeFileSync(join(ranks, 'notes.bin'), Buffer.from([0, 255, 3, 254, 1]));
  const { page } = await visitPage(browser);
  await give(page, ranks, 'A folder');
  const note = page.getByRole('region', { name: 'What was read' });
  await expect.poll(() => note.textContent(), { timeout: 60000 }).toContain('3 files: ranks/rank0.pickle, ranks/rank2.pickle, ranks/rank10.pickle');
  expect(await note.textContent()).toContain('1 left out');
  expect(await note.textContent()).toContain('ranks/notes.bin: ');
  const json = JSON.parse(await answerOf(page, 'JSON', 'ashlar.json')) as unknown[];
  expect(json).toHaveLength(3);
  await page.context().close();
});

it('explains a text that was pasted', async () => {
  const { page } = await visitPage(browser);
  await page.getByText('Or paste an error message').click();
  await page.getByLabel('An error message or a log').fill('torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 1.00 GiB of which 10.00 MiB is free.');
  await page.getByRole('button', { name: 'Explain the text' }).click();
  expect(await textOf(page, 'ashlar.txt')).toContain('20.00 MiB');
  await page.context().close();
});

it('works from a host, of which it asks for its module and nothing else', async () => {
  const host = new Host(join(kDist, 'web'));
  const { page, requests, problems } = await visitPage(browser, { url: `${await host.start()}/` });
  await give(page, kExample);
  expectSame(await textOf(page, 'ashlar.txt'), program(['explain', 'training_oom.pickle'], folder));
  expect(host.asked).toEqual(['/', '/ashlar_web.wasm']);
  expect(requests).toHaveLength(2);
  expect(problems).toEqual([]);
  const download = page.waitForEvent('download');
  await page.getByRole('link', { name: 'the same page as one file' }).click();
  expect((await download).suggestedFilename()).toBe('ashlar.html');
  await page.context().close();
  host.end();
});

it('refuses a file of 2 GiB before it is read', async () => {
  const large = join(scratch.folder, 'large.pickle');
  const file = openSync(large, 'w');
  ftruncateSync(file, 2 ** 31);
  closeSync(file);
  const { page } = await visitPage(browser);
  await give(page, large);
  expect(await page.getByRole('alert').textContent()).toMatch(/large\.pickle: is 2\.00 GiB.*run ashlar explain/);
  await page.context().close();
});
