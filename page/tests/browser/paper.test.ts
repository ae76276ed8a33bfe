// The page as it is printed, in Chromium.
import { describe, expect, it } from 'vitest';
import { settle } from './browser';
import { hasPage } from './pages';
import { leave, momentOf, visit } from './visit';

describe('on paper', () => {
  it('prints the answer without controls', async () => {
    for (const name of ['made', 'fragmented'].filter(hasPage)) {
      const page = await visit(name, { colorScheme: 'dark' });
      await page.emulateMedia({ media: 'print' });
      expect(await page.locator('.transport').isVisible()).toBe(false);
      expect(await page.locator('.headline').isVisible()).toBe(true);
      await settle(page);
      expect(await page.evaluate(() => getComputedStyle(document.body).backgroundColor)).toBe('rgb(255, 255, 255)');
      const place = (selector: string): Promise<number> => page.locator(selector).first().evaluate((element) => element.getBoundingClientRect().x);
      const over = (await page.locator('.work .curve .u-over').first().boundingBox())!;
      const last = Number(await page.locator('.transport input[type=range]').getAttribute('max'));
      if (name === 'made') expect(await place('.work .moment-line') - over.x).toBeCloseTo((over.width * (await momentOf(page))) / last, -1);
      const paper = await page.pdf({ format: 'A4' });
      expect(paper.length).toBeGreaterThan(20000);
      await leave();
    }
  });
});
