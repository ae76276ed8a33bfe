// What estimate, dry-run, diff and fleet add to a page, in Chromium.
import { describe, expect, it } from 'vitest';
import { pixels, visit } from './visit';

describe('the parts of other commands', () => {
  it('show a fleet: the heat map, a rank by click and by key, a table that finds', async () => {
    const page = await visit('parts');
    const fleet = page.locator('#fleet');
    await expect(fleet.locator('.rank-details').textContent()).resolves.toContain('rank 3');
    await expect(fleet.locator('.rank-details').textContent()).resolves.toContain('ashlar report run/rank3.pickle -o rank3.html');
    expect(await fleet.locator('.fleet-part summary strong').allTextContents()).toEqual(
      ['Failed', 'Who differs', 'Stages', 'Causes', 'Settings differ', 'One setting for all']);
    expect(await fleet.locator('.heat-stage').count()).toBe(1);
    expect(await fleet.locator('.heat-marker').isVisible()).toBe(true);
    expect(await fleet.locator('.heat-times').textContent()).toContain('6.000 s');
    const reserved = await pixels(page, '.heat canvas');
    await fleet.getByLabel('Scale of the heat map').selectOption('log');
    const logarithmic = await pixels(page, '.heat canvas');
    expect(logarithmic).not.toBe(reserved);
    await fleet.getByLabel('What the heat map shows').selectOption('allocated');
    expect(await pixels(page, '.heat canvas')).not.toBe(logarithmic);
    await page.locator('.heat').focus();
    await page.keyboard.press('ArrowDown');
    await expect(fleet.locator('.rank-details').textContent()).resolves.toContain('rank 4');
    const box = (await page.locator('.heat').boundingBox())!;
    await page.mouse.click(box.x + box.width / 2, box.y + (box.height * 0.5) / 47); // of 47 rows the first: rank 5 has none
    await expect(fleet.locator('.rank-details').textContent()).resolves.toContain('rank 0');
    await fleet.getByLabel('Search: Ranks').fill('broken');
    await fleet.getByLabel('Search: Ranks').fill('middle of a list');
    await expect(fleet.locator('.table tbody tr').allTextContents()).resolves.toHaveLength(1);
  });

  it('show pinned memory of the host with a curve of its own', async () => {
    const page = await visit('parts');
    await expect(page.locator('#pinned-host').textContent()).resolves.toContain('3.00 MiB held, 1.00 MiB in use at the end; at most 5.00 MiB held, 4.00 MiB in use');
    await page.locator('#pinned-host .curve canvas').waitFor();
  });

  it('name the card that is enough', async () => {
    const page = await visit('parts');
    await expect(page.locator('#cards').textContent()).resolves.toContain('A10-24GB is enough, with expandable_segments:True.');
    await expect(page.locator('#cards tr.advised th').textContent()).resolves.toBe('A10-24GB');
    await expect(page.locator('#cards').textContent()).resolves.toContain('as A100-80GB would run it: fails: step 1, backward');
  });

  it('leave what to do on top', async () => {
    const page = await visit('parts');
    const top = (selector: string): Promise<number> => page.locator(selector).first().evaluate((element) => element.getBoundingClientRect().top);
    expect(await top('.verdict .actions')).toBeLessThan(await top('#cards'));
    expect(await top('#cards')).toBeLessThan(await top('.work'));
  });

  it('tell first to mend a program that ended before its end', async () => {
    const page = await visit('ended');
    await expect(page.locator('.actions').first().textContent()).resolves.toMatch(/^TRY FIRSTmend what ended the program/);
    expect(await page.locator('main .panel').first().getAttribute('id')).toBe('cards');
  });

  it('give a fleet what serves all its ranks, right after what went wrong', async () => {
    const page = await visit('parts');
    const order = await page.locator('#fleet > :is(.evidence, .actions)').evaluateAll((list) => list.map((one) => one.className));
    expect(order.slice(0, 3)).toEqual(['evidence first', 'actions', 'evidence']);
    await expect(page.locator('#fleet .actions').textContent()).resolves.toMatch(/^FIXexport PYTORCH_CUDA_ALLOC_CONF=expandable_segments:TrueCopy.*serves all ranks best$/);
  });

  it('show an estimate as stacked areas, and a diff', async () => {
    const page = await visit('parts');
    if ((await page.locator('#estimate').count()) === 0) return; // without the program there is none
    await expect(page.locator('#estimate svg polygon').count()).resolves.toBeGreaterThan(3);
    await expect(page.locator('#estimate .legend').textContent()).resolves.toContain('weights');
    await page.locator('#estimate svg').hover();
    await expect(page.locator('#estimate .tip').textContent()).resolves.toMatch(/: [\d.]+ [KMG]iB.*weights [\d.]+ [KMG]iB/);
    await expect(page.locator('#diff').textContent()).resolves.toContain('No part differs.');
  });
});
