// Opens pages in Chromium as a reader does: from a file. Whatever is asked of a network is refused and kept, and so is what
// the console says. ASHLAR_BROWSER=firefox opens them in Firefox, by WebDriver BiDi.
import { existsSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { chromium, firefox, type Browser, type BrowserContextOptions, type Page } from 'playwright-core';

export const kIsFirefox = process.env.ASHLAR_BROWSER === 'firefox';
export const kChromium = process.env.ASHLAR_CHROMIUM ?? '/usr/bin/chromium';
export const kFirefox = process.env.ASHLAR_FIREFOX ?? '/usr/bin/firefox-esr';

export function launch(): Promise<Browser> {
  if (kIsFirefox) return firefox.launch({ executablePath: kFirefox, channel: 'moz-firefox' });
  if (!existsSync(kChromium)) throw new Error(`no browser at ${kChromium}: apt-get install chromium, or set ASHLAR_CHROMIUM`);
  return chromium.launch({ executablePath: kChromium, args: ['--no-sandbox', '--disable-gpu'] });
}

export interface Opened {
  page: Page;
  requests: string[]; // beyond the file itself
  problems: string[]; // errors and warnings of the console, and exceptions
  close(): Promise<void>;
}

export interface OpenOptions extends BrowserContextOptions {
  hash?: string;
  readyFor?: 'curves' | 'map' | 'all';
}

export async function open(browser: Browser, file: string, options: OpenOptions = {}): Promise<Opened> {
  const { hash: given = '', readyFor = 'all', ...rest } = options;
  const isDark = kIsFirefox && rest.colorScheme === 'dark'; // which Firefox is not told
  const hash = isDark ? `${given === '' ? '#' : `${given}&`}t=dark` : given;
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...rest });
  const page = await context.newPage();
  const requests: string[] = [];
  const problems: string[] = [];
  const url = pathToFileURL(file).href;
  page.on('request', (request) => {
    if (request.url().split('#')[0] !== url && !/^(data|blob):/.test(request.url())) requests.push(request.url());
  });
  await context.route(/^(?!file:|data:|blob:)/, (route) => route.abort());
  page.on('console', (message) => { if (['error', 'warning'].includes(message.type())) problems.push(message.text()); });
  page.on('pageerror', (error) => problems.push(error.message));
  await page.goto(url + hash);
  await waitReady(page, readyFor);
  return { page, requests, problems, close: () => context.close() };
}

export async function waitReady(page: Page, state: 'curves' | 'map' | 'all' = 'all'): Promise<void> {
  const states = ['curves', 'map', 'all'];
  const wanted = states.slice(states.indexOf(state));
  await page.waitForFunction((names) => names.includes(document.documentElement.dataset.ready ?? ''), wanted, { timeout: 20000 });
}

// Until the view has come to rest and what follows it is drawn.
export async function settle(page: Page): Promise<void> {
  await page.waitForTimeout(260);
  await page.waitForFunction(() => ((globalThis as { ashlarCost?: { waiting: number } }).ashlarCost?.waiting ?? 0) === 0);
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
}
