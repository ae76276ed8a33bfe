// The page on a phone, by the keyboard alone, and for axe-core, in both themes.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { launch } from '../browser/browser';
import { give, kExample, kMessage, textOf, visitPage } from './web_page';

interface Axe {
  run(context: unknown, options: unknown): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }>;
}

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
let browser: Browser;
beforeAll(async () => { browser = await launch(); });
afterAll(() => browser.close());

async function findings(page: Page): Promise<string[]> {
  await page.evaluate(axe);
  return page.evaluate(async () => {
    document.querySelectorAll('details').forEach((details) => { details.open = true; });
    const { violations } = await (window as unknown as { axe: Axe }).axe.run(document, { resultTypes: ['violations'] });
    return violations.flatMap(({ id, nodes }) => nodes.slice(0, 3).map(({ html }) => `${id}: ${html.slice(0, 200)}`));
  });
}

describe.each([1440, 360])('%i wide', (width) => {
  it.each(['light', 'dark'] as const)('%s: axe-core finds nothing, and nothing is wider than the screen', async (colorScheme) => {
    const { page } = await visitPage(browser, { colorScheme, viewport: { width, height: 800 }, bypassCSP: true });
    expect(await findings(page)).toEqual([]);
    await give(page, [kMessage, kExample]);
    for (const tab of ['Answer', 'What if', 'JSON']) {
      await page.getByRole('tab', { name: tab, exact: true }).click();
      await page.waitForTimeout(300);
      expect(await findings(page), tab).toEqual([]);
      expect(await page.evaluate(() => document.documentElement.scrollWidth), tab).toBeLessThanOrEqual(width);
    }
    await page.context().close();
  });
});

it('is used by the keyboard alone', async () => {
  const { page } = await visitPage(browser);
  const chooser = page.waitForEvent('filechooser'); // before the key: the browser is told to hand it over, which takes a moment
  await page.keyboard.press('Tab');
  expect(await page.evaluate(() => document.activeElement?.textContent)).toBe('Choose files');
  await page.keyboard.press('Enter');
  await (await chooser).setFiles(kExample);
  await textOf(page, 'ashlar.txt');
  for (let i = 0; i < 12 && (await page.evaluate(() => document.activeElement?.getAttribute('role'))) !== 'tab'; ++i) await page.keyboard.press('Tab');
  for (let i = 0; i < 4; ++i) await page.keyboard.press('ArrowLeft');
  expect(await page.evaluate(() => document.activeElement?.textContent)).toBe('Report page');
  expect(await page.evaluate(() => document.activeElement?.getAttribute('aria-selected'))).toBe('true');
  await page.context().close();
});
