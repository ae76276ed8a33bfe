// Nothing leaves the page, whatever runs in it; and names and texts of files are never markup.
import type { Browser, Frame, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { launch } from '../browser/browser';
import { give, Host, kExample, textOf, visitPage } from './web_page';

let browser: Browser;
beforeAll(async () => { browser = await launch(); });
afterAll(() => browser.close());

// Every way by which a page asks for something, as a script within it would.
async function askEveryWay(of: Page | Frame, host: string): Promise<void> {
  await of.evaluate(async (url) => {
    const quietly = async (ask: () => unknown): Promise<void> => { try { await ask(); } catch { /* as it should */ } };
    await quietly(() => fetch(`${url}/fetch`, { mode: 'no-cors' }));
    await quietly(() => { const ask = new XMLHttpRequest(); ask.open('GET', `${url}/xhr`); ask.send(); });
    await quietly(() => navigator.sendBeacon(`${url}/beacon`, 'x'));
    await quietly(() => new WebSocket(`${url.replace('http', 'ws')}/socket`));
    await quietly(() => new EventSource(`${url}/events`));
    await quietly(() => import(`${url}/module.js`));
    const add = (tag: string, attributes: Record<string, string>): void => {
      const element = document.createElement(tag);
      for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
      document.body.append(element);
    };
    add('img', { src: `${url}/image` });
    add('script', { src: `${url}/script` });
    add('link', { rel: 'stylesheet', href: `${url}/style` });
    add('link', { rel: 'prefetch', href: `${url}/prefetch` });
    add('link', { rel: 'preload', as: 'image', href: `${url}/preload` });
    add('link', { rel: 'icon', href: `${url}/icon` });
    add('link', { rel: 'manifest', href: `${url}/manifest` });
    add('iframe', { src: `${url}/frame` });
    add('object', { data: `${url}/object` });
    add('embed', { src: `${url}/embed` });
    add('video', { src: `${url}/video`, poster: `${url}/poster` });
    add('div', { style: `width: 9px; height: 9px; background: url(${url}/inline)` });
    add('div', {});
    Object.assign((document.body.lastElementChild as HTMLElement).style, { width: '9px', height: '9px', backgroundImage: `url(${url}/cssom)` });
    const worker = new Worker(URL.createObjectURL(new Blob([
      `fetch('${url}/worker').catch(() => 0); try { importScripts('${url}/imported') } catch {}; postMessage(0)`])));
    await quietly(() => new Promise((resolve) => { worker.onmessage = worker.onerror = resolve; setTimeout(resolve, 2000); }));
    add('form', { action: `${url}/form`, method: 'post', target: '_blank' });
    await quietly(() => (document.body.lastElementChild as HTMLFormElement).submit());
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }, host);
}

it('lets no request leave: not from the page, its frame or its worker', async () => {
  const host = new Host(null);
  const url = await host.start();
  // A page without the policy asks, so that the ways are seen to work.
  const open = await (await browser.newContext()).newPage();
  await open.goto(`${url}/`);
  await askEveryWay(open, url);
  const ways = ['fetch', 'xhr', 'beacon', 'socket', 'events', 'image', 'script', 'style', 'frame', 'object', 'inline', 'cssom', 'worker', 'form'];
  for (const way of ways) expect(host.asked, way).toContain(`/${way}`);
  host.asked.length = 0;
  const { page } = await visitPage(browser);
  await give(page, kExample);
  await page.getByRole('tab', { name: 'Report page' }).click();
  await page.frameLocator('iframe.report').locator('h1').waitFor();
  await askEveryWay(page, url);
  const frame = page.frames().find((one) => one.url().startsWith('blob:'))!;
  await askEveryWay(frame, url);
  expect(host.asked).toEqual([]);
  host.end();
});

const kName = '<img src=x onerror="globalThis.hacked=1">'; // a name has no slash
const kMarkup = `${kName}<script>globalThis.hacked=1</script>`;

async function expectNoMarkup(page: Page): Promise<void> {
  for (const frame of page.frames()) {
    expect(await frame.evaluate(() => document.querySelectorAll('img').length)).toBe(0);
    expect(await frame.evaluate(() => 'hacked' in globalThis)).toBe(false);
  }
}

it('shows names and texts of files as text', async () => {
  const { page, problems } = await visitPage(browser);
  const text = `rank 0 ${kMarkup}\n  File "/home/${kMarkup}/train.py", line 3, in ${kMarkup}\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 1.00 GiB of which 10.00 MiB is free.\n`;
  await give(page, { name: `${kName}.log`, mimeType: 'text/plain', buffer: Buffer.from(text) });
  await page.getByRole('tab', { name: 'Report page' }).click();
  await expect.poll(() => page.frameLocator('iframe.report').locator('html').getAttribute('data-ready'), { timeout: 30000 }).toBe('all');
  expect(await page.frameLocator('iframe.report').locator('h1').textContent()).toContain('<img');
  for (const tab of ['Markdown', 'JSON', 'Answer']) await page.getByRole('tab', { name: tab }).click();
  await textOf(page, 'ashlar.txt');
  await expectNoMarkup(page);
  await give(page, { name: `${kName}.bin`, mimeType: 'text/plain', buffer: Buffer.from([0, 255, 1, 254]) });
  await expect.poll(() => page.getByRole('alert').textContent()).toContain('<img');
  await expectNoMarkup(page);
  expect(problems).toEqual([]);
});
