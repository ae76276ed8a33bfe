// A browser for the tests of one file, and the page that a test visits: it must have had no problem and made no request.
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import { launch, open, type Opened, type OpenOptions } from './browser';
import { pagePath } from './pages';

let browser: Browser;
let opened: Opened | null = null;
beforeAll(async () => { browser = await launch(); });
afterAll(() => browser.close());
afterEach(leave);

export async function visit(name: string, options: OpenOptions = {}): Promise<Page> {
  opened = await open(browser, pagePath(name), options);
  return opened.page;
}

// A page of its own, which nothing is asked of at the end.
export const visitNothing = async (): Promise<Page> => (await browser.newContext()).newPage();

// Before the test's end where it visits another.
export async function leave(): Promise<void> {
  const last = opened;
  opened = null;
  if (last === null) return;
  expect(last.problems).toEqual([]);
  expect(last.requests).toEqual([]);
  await last.close();
}

export const momentOf = async (page: Page): Promise<number> => Number(await page.locator('.transport input[type=range]').inputValue());

// What is drawn, as one number.
export const pixels = (page: Page, selector: string): Promise<number> => page.locator(selector).first().evaluate((canvas) => {
  const { width, height } = canvas as HTMLCanvasElement;
  const copy = Object.assign(document.createElement('canvas'), { width, height }).getContext('2d', { willReadFrequently: true })!;
  copy.drawImage(canvas as HTMLCanvasElement, 0, 0);
  const data = copy.getImageData(0, 0, width, height).data;
  let hash = 0;
  for (let i = 0; i < data.length; i += 4) hash = (hash * 31 + data[i] + 3 * data[i + 1] + 7 * data[i + 2]) >>> 0;
  return hash;
});
