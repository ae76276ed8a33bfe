// axe-core over the page in each theme, width and state: no finding of any weight.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { launch, open, settle } from './browser';
import { hasPage, pagePath, recorded } from './pages';

interface Axe {
  run(context: unknown, options: unknown): Promise<{ violations: { id: string; help: string; nodes: { html: string; failureSummary?: string }[] }[] }>;
}

const source = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
let browser: Browser;
beforeAll(async () => { browser = await launch(); });
afterAll(() => browser.close());

async function findings(name: string, hash: string, scheme: 'light' | 'dark', width: number): Promise<string[]> {
  const opened = await open(browser, pagePath(name), { hash, colorScheme: scheme, viewport: { width, height: 900 }, bypassCSP: true });
  await settle(opened.page);
  await opened.page.evaluate(source);
  const found = await opened.page.evaluate(async () => {
    const axe = (window as unknown as { axe: Axe }).axe;
    document.querySelectorAll('details').forEach((details) => { details.open = true; });
    const { violations } = await axe.run(document, { resultTypes: ['violations'] });
    return violations.flatMap((row) => row.nodes.slice(0, 3).map((node) => `${row.id}: ${row.help}: ${node.html.slice(0, 200)} ${(node.failureSummary ?? '').slice(0, 300)}`));
  });
  await opened.close();
  return found;
}

const states = ['', '#c=stack&h=1&l=rows', '#k=5&c=age', '#w=1&o=1.2', '#e=0', '#a=100&b=900&x=time'];

describe.each(['light', 'dark'] as const)('%s', (scheme) => {
  it.each(['made', 'parts', ...recorded])('%s', async (name) => {
    if (!hasPage(name)) return;
    const isChief = name === 'made' || name === 'fragmented';
    for (const hash of isChief ? states : ['']) expect(await findings(name, hash, scheme, 1440), `${name} ${hash}`).toEqual([]);
    if (isChief) expect(await findings(name, '', scheme, 360), `${name} on a phone`).toEqual([]);
  });
});
