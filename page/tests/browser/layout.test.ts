// The layout of each page in each width, as a machine can judge it: nothing is wider than the window or its box, cut, or over something
// else, no panel is empty, and what to do stands on top, open.
import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { layOutAll, layoutFaults } from './layout';
import { hasPage, kWidths, recorded } from './pages';
import { leave, visit, visitNothing } from './visit';

const names = ['parts', 'ended', ...recorded].filter(hasPage);
const screenOf = (width: number): { width: number; height: number } => ({ width, height: 900 });

async function faultsOf(body: string): Promise<string[]> {
  const page = await visitNothing();
  await page.setContent(`<body style="margin: 0; width: 400px">${body}</body>`);
  const faults = await layoutFaults(page);
  await page.context().close();
  return faults;
}

describe('the judge', () => {
  it.each([
    ['is cut', '<div style="width: 50px; overflow: hidden; white-space: nowrap">more than there is room for</div>'],
    ['leaves its panel', '<div class="panel" style="width: 50px; white-space: nowrap">more than there is room for</div>'],
    ['lie over each other', '<p>one</p><p style="margin-top: -30px">other</p>'],
    ['is empty', '<div class="panel"></div>'],
    ['wide in a window', '<div style="width: 5000px">x</div>'],
    ['is wider than its box', '<div class="table-scroll" style="width: 50px; overflow: auto"><div style="width: 90px">x</div></div>'],
  ])('sees what %s', async (fault, body) => {
    expect((await faultsOf(body)).join()).toContain(fault);
  });

  it('lets pass what is well', async () => {
    expect(await faultsOf('<div class="panel"><p>one</p><p>other</p><pre style="width: 50px; overflow: auto">scrolls to its end</pre></div>')).toEqual([]);
  });
});

describe.each(kWidths)('%i wide', (width) => {
  it.each(names)('%s is laid out well', async (name) => {
    const page = await visit(name, { viewport: screenOf(width) });
    await layOutAll(page);
    expect(await layoutFaults(page)).toEqual([]);
  });

  it('notes beside the pointer stay within the window', async () => {
    for (const name of ['made', 'fragmented'].filter(hasPage)) {
      const page = await visit(name, { viewport: screenOf(width) });
      for (const share of [0.02, 0.5, 0.98]) expect(await isTipWithin(page, share), `${name} at ${share}`).toBe(true);
      await leave();
    }
  });
});

async function isTipWithin(page: Page, share: number): Promise<boolean> {
  const plot = page.locator('.work .curve .u-over').first();
  await plot.scrollIntoViewIfNeeded();
  const box = (await plot.boundingBox())!;
  await page.mouse.move(box.x + share * box.width, box.y + 60);
  const tip = page.locator('.work .curve .tip').first();
  await tip.waitFor();
  const { x, width } = (await tip.boundingBox())!;
  return x >= 0 && x + width <= page.viewportSize()!.width;
}

describe('what to do', () => {
  const top = (page: Page, selector: string): Promise<number> => page.locator(selector).first().evaluate((element) => element.getBoundingClientRect().top);

  it.each(recorded.filter(hasPage))('is on top and open: %s', async (name) => {
    const page = await visit(name);
    const actions = page.locator('.verdict .actions');
    if ((await actions.count()) === 0) { // nothing to change, and a sentence says so
      expect(await page.locator('.verdict .evidence').count()).toBeGreaterThan(0);
      return;
    }
    expect(await actions.isVisible()).toBe(true);
    expect(await top(page, '.actions')).toBeLessThan(450);
  });
});
