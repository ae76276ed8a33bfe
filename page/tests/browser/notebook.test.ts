// Pages in a notebook: frames, of which one has the page's program.
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Browser, Frame } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { launch, type Opened } from './browser';
import { hasPage, kPages, kRoot, pagePath } from './pages';

let browser: Browser;
let outputs: string[]; // the first has the program
let opened: Pick<Opened, 'page' | 'problems' | 'requests'>;

beforeAll(async () => {
  browser = await launch();
  outputs = framesOf(0, 'made', 'parts', 'made');
});
afterAll(() => browser.close());
afterEach(async () => {
  expect(opened.problems).toEqual([]);
  expect(opened.requests).toEqual([]);
  await opened.page.context().close();
});

function framesOf(most: number, ...pages: string[]): string[] {
  return JSON.parse(execFileSync('python3', ['-B', join(kRoot, 'page/tests/browser/notebook_frames.py'), String(most), ...pages.map(pagePath)],
    { encoding: 'utf8', maxBuffer: 2 ** 30 })) as string[];
}

const hasProgram = (html: string): boolean => html.includes('id=&quot;packed-program&quot;');

// A notebook with these outputs, one below the other.
async function show(...shown: string[]): Promise<void> {
  const file = join(kPages, 'notebook.html');
  writeFileSync(file, `<!doctype html><meta charset="utf-8"><title>Notebook</title>${shown.map((html) => `<div class="output">${html}</div>`).join('')}`);
  const context = await browser.newContext({ viewport: { width: 1200, height: 900 * shown.length + 100 } });
  const page = await context.newPage();
  opened = { page, problems: [], requests: [] };
  page.on('console', (message) => { if (['error', 'warning'].includes(message.type())) opened.problems.push(message.text()); });
  page.on('pageerror', (error) => opened.problems.push(error.message));
  page.on('request', (request) => { if (!/^(file|data|blob|about):/.test(request.url())) opened.requests.push(request.url()); });
  await page.goto(pathToFileURL(file).href);
}

async function frameOf(output: number): Promise<Frame> {
  const element = await opened.page.locator('.output iframe').nth(output).elementHandle();
  return (await element!.contentFrame())!;
}

const drawn = async (output: number): Promise<string | null> => {
  const frame = await frameOf(output);
  await frame.waitForFunction(() => document.documentElement.dataset.ready === 'all', null, { timeout: 20000, polling: 100 });
  return frame.locator('h1').textContent();
};

const isRefusal = (line: string): boolean => /Content.Security.Policy|blocked an inline/.test(line);

const says = async (output: number): Promise<string | null> => {
  const line = (await frameOf(output)).locator('#waiting');
  await line.waitFor({ timeout: 10000 });
  return line.textContent();
};

const add = (html: string): Promise<void> => opened.page.evaluate((text) => {
  document.body.appendChild(Object.assign(document.createElement('div'), { className: 'output', innerHTML: text }));
}, html);

it('one output has the program, and all are drawn, in whatever order they stand', async () => {
  expect(outputs.map(hasProgram)).toEqual([true, false, false]);
  for (const order of [[0, 1, 2], [2, 1, 0]]) {
    await show(...order.map((i) => outputs[i]));
    const titles = await Promise.all(order.map((_, i) => drawn(i)));
    expect(titles[1]).not.toBe('');
    expect(titles[0]).toBe(titles[2]);
    await expect((await frameOf(1)).locator('#cards').textContent()).resolves.toContain('A10-24GB is enough');
    if (order[0] === 0) await opened.page.context().close();
  }
});

it('without it a frame says what to do, and is drawn as soon as it comes', async () => {
  await show(outputs[1]);
  expect(await says(0)).toContain('Run this cell again');
  await add(outputs[0]);
  await Promise.all([drawn(0), drawn(1)]);
});

it('what has it hands it on when the first output is gone', async () => {
  await show(outputs[0], outputs[1]);
  await drawn(1);
  await opened.page.locator('.output').first().evaluate((output) => output.remove());
  await add(outputs[2]);
  await drawn(1);
});

it('takes no other program', async () => {
  await show(outputs[1]);
  await says(0);
  const program = await (await frameOf(0)).evaluate(() => document.documentElement.dataset.program);
  await opened.page.evaluate(async (name) => {
    const text = JSON.stringify({ style: 'p { color: red }', script: 'document.getElementById("page").textContent = "taken"' });
    const bytes = await new Response(new Blob([text]).stream().pipeThrough(new CompressionStream('gzip'))).arrayBuffer();
    const packed = btoa(String.fromCharCode(...new Uint8Array(bytes)));
    document.querySelector('iframe')!.contentWindow!.postMessage({ ashlarProgram: name, packed }, '*');
  }, program);
  await expect.poll(() => opened.problems.filter(isRefusal).length).toBeGreaterThanOrEqual(2); // style and script
  expect(await says(0)).toContain('Run this cell again');
  await add(outputs[0]);
  await drawn(0);
  opened.problems = opened.problems.filter((line) => !isRefusal(line));
});

it('a page made small is drawn too', async () => {
  if (!hasPage('fragmented') || !hasPage('failed')) return;
  const small = framesOf(32000, 'fragmented', 'failed');
  expect(small.map(hasProgram)).toEqual([true, false]);
  expect(small[1].length).toBeLessThanOrEqual(32000);
  await show(...small);
  await Promise.all([drawn(0), drawn(1)]);
  await expect((await frameOf(1)).locator('.thinned').textContent()).resolves.toMatch(/^\d+ moments of 5,084 events are here/);
  await expect((await frameOf(0)).locator('#what-ifs tbody tr').count()).resolves.toBeGreaterThan(3);
  await expect((await frameOf(0)).locator('#what-ifs input').count()).resolves.toBe(0); // no curves and maps of other settings
});
