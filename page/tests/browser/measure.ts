// Opens a page and works it: the times of its opening, and the frames of each kind of work.
import type { Browser } from 'playwright-core';
import { open, settle } from './browser';
import { trace, type Frames } from './frames';

export interface Measured {
  drawnMs: { curves: number; map: number; all: number }; // from the begin of opening the file
  zoom: Frames;
  pan: Frames;
  slide: Frames;
  play: Frames;
}

export async function measure(browser: Browser, file: string): Promise<Measured> {
  const opened = await open(browser, file);
  const { page } = opened;
  const drawnMs = await page.evaluate(() => {
    const at = (name: string): number => Math.round(performance.getEntriesByName(name)[0]?.startTime ?? NaN);
    return { curves: at('ashlar-curves'), map: at('ashlar-map'), all: at('ashlar-all') };
  });
  await settle(page);
  const over = (await page.locator('.work .curve .u-over').first().boundingBox())!;
  const zoom = await trace(page, async () => {
    await page.mouse.move(over.x + over.width * 0.4, over.y + 60);
    await page.keyboard.down('Control');
    for (let i = 0; i < 60; ++i) {
      await page.mouse.wheel(0, i < 30 ? -30 : 30);
      await page.waitForTimeout(16);
    }
    await page.keyboard.up('Control');
  });
  await page.locator('.work .curve').first().press('+');
  await page.locator('.work .curve').first().press('+');
  await page.mouse.move(over.x + over.width * 0.4, over.y + 60);
  await settle(page);
  const pan = await trace(page, async () => {
    await page.keyboard.down('Shift');
    await page.mouse.down();
    for (let i = 0; i < 60; ++i) {
      await page.mouse.move(over.x + over.width * (0.4 + 0.3 * Math.sin(i / 8)), over.y + 60);
      await page.waitForTimeout(16);
    }
    await page.mouse.up();
    await page.keyboard.up('Shift');
  });
  await page.locator('.work .curve').first().press('0');
  await settle(page);
  const slider = (await page.locator('.transport input[type=range]').boundingBox())!;
  const slide = await trace(page, async () => {
    await page.mouse.move(slider.x + slider.width * 0.3, slider.y + slider.height / 2);
    await page.mouse.down();
    for (let i = 0; i < 90; ++i) {
      await page.mouse.move(slider.x + slider.width * (0.3 + 0.004 * i), slider.y + slider.height / 2);
      await page.waitForTimeout(16);
    }
    await page.mouse.up();
  });
  await settle(page);
  const play = await trace(page, async () => {
    await page.locator('.transport .play').click();
    await page.waitForTimeout(1500);
    await page.locator('.transport .play').click();
  });
  await opened.close();
  return { drawnMs, zoom, pan, slide, play };
}
