// What a frame does while a page is zoomed, panned, slid and played, in counts that every machine has alike: drawings, values
// read, blocks, pixels, and what is written into the document. The limits are the same for 20,000 events and for a million.
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { launch, open, settle, type Opened } from './browser';
import { pagePath } from './pages';

interface Cost { curves: number; bands: number; maps: number; samples: number; blocks: number; pixels: number; rests: number; writes: number }

const kReads = 40; // values of a line in a pixel column
const kLines = 4;
const kNear = 16384; // moments from which the blocks in use are made out anew

let browser: Browser;
beforeAll(async () => { browser = await launch(); });
afterAll(() => browser.close());

// Does one thing, and gives what the frame after it did. Where a busy machine let the view come to rest in between, which no
// frame of a gesture does, it is done again.
async function prepare(page: Page): Promise<void> {
  await page.evaluate(() => {
    const world = globalThis as unknown as { ashlarCost: Cost; ashlarFrame: (act: (attempt: number) => void) => Promise<Cost> };
    const observer = new MutationObserver(() => undefined);
    observer.observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
    const frame = (): Promise<void> => new Promise((done) => requestAnimationFrame(() => done()));
    world.ashlarFrame = async (act) => {
      for (let attempt = 0; ; ++attempt) {
        await frame();
        const before: Cost = { ...world.ashlarCost };
        observer.takeRecords();
        act(attempt);
        await frame(); // asked for after the page has asked for its own
        const writes = observer.takeRecords().length;
        const now: Cost = { ...world.ashlarCost };
        if (now.rests !== before.rests && attempt < 20) continue;
        const made = Object.fromEntries(Object.entries(now).map(([key, value]) => [key, value - before[key as keyof Cost]]));
        return { ...made, writes } as unknown as Cost;
      }
    };
  });
}

type World = { ashlarFrame: (act: (attempt: number) => void) => Promise<Cost> };

// Zooms with Ctrl, pans with Shift.
const wheels = (page: Page, deltaY: number, shiftKey: boolean, events = 1): Promise<Cost> =>
  page.evaluate(([dy, shift, times]) => (globalThis as unknown as World).ashlarFrame(() => {
    const over = document.querySelector('.work .curve .u-over')!;
    const box = over.getBoundingClientRect();
    for (let i = 0; i < times; ++i)
      over.dispatchEvent(new WheelEvent('wheel', {
        deltaY: dy, shiftKey: shift, ctrlKey: !shift, clientX: box.left + 0.4 * box.width, clientY: box.top + 40, bubbles: true, cancelable: true }));
  }), [deltaY, shiftKey, events] as const);

const slide = (page: Page, share: number): Promise<Cost> =>
  page.evaluate((at) => (globalThis as unknown as World).ashlarFrame((attempt) => {
    const range = document.querySelector('.transport input[type=range]') as HTMLInputElement;
    range.value = String(Math.round(Number(range.max) * at) + attempt);
    range.dispatchEvent(new Event('input', { bubbles: true }));
  }), share);

describe.each(['made', 'made_million'])('a frame of %s', (name) => {
  let opened: Opened;
  const area = async (selector: string): Promise<number> => opened.page.locator(selector).first()
    .evaluate((canvas) => (canvas as HTMLCanvasElement).width * (canvas as HTMLCanvasElement).height);
  beforeAll(async () => {
    opened = await open(browser, pagePath(name));
    await settle(opened.page);
    await prepare(opened.page);
  });
  afterAll(() => opened.close());

  // So that both plots are in sight, or one.
  const scroll = async (to: 'both' | 'top'): Promise<void> => {
    await opened.page.evaluate((where) => {
      if (where === 'top') scrollTo(0, 0);
      else document.querySelectorAll('.work .curve')[1].scrollIntoView({ block: 'end' });
    }, to);
    await settle(opened.page);
  };

  it('zooms and pans by one drawing that reads so much a pixel, and writes next to nothing', async () => {
    await scroll('both');
    const canvas = await area('.work .curve canvas');
    const { width } = (await opened.page.locator('.work .curve .u-over').first().boundingBox())!;
    for (let i = 0; i < 18; ++i) {
      const made = i < 12 ? await wheels(opened.page, -30, false) : await wheels(opened.page, 40, true);
      expect(made).toMatchObject({ curves: 1, bands: 1, maps: 0, blocks: 0 });
      expect(made.samples).toBeGreaterThan(width);
      expect(made.samples).toBeLessThanOrEqual(kLines * width * kReads);
      expect(made.pixels).toBeLessThanOrEqual(canvas);
      expect(made.writes).toBeLessThanOrEqual(12);
    }
  });

  it('leaves out what is out of sight, until the view rests', async () => {
    await scroll('top');
    const drawn = (): Promise<number> => opened.page.evaluate(() => (globalThis as unknown as { ashlarCost: Cost }).ashlarCost.bands);
    const before = await drawn();
    for (let i = 0; i < 6; ++i) expect(await wheels(opened.page, i < 3 ? -30 : 30, false)).toMatchObject({ curves: 1, bands: 0 });
    await settle(opened.page);
    expect(await drawn()).toBeGreaterThan(before);
  });

  it('draws once for all that happens before a frame', async () => {
    expect((await wheels(opened.page, 30, false, 9)).curves).toBe(1);
  });

  it('slides by one drawing of the map', async () => {
    await opened.page.locator('.work .curve').first().press('0');
    await settle(opened.page);
    const canvas = await area('.map canvas.rows');
    for (let i = 0; i < 12; ++i) {
      const made = await slide(opened.page, 0.3 + 0.004 * i + (i === 6 ? 0.4 : 0)); // and a leap
      expect(made).toMatchObject({ curves: 0, bands: 0, maps: 1, samples: 0 });
      expect(made.blocks).toBeLessThanOrEqual(4 * kNear);
      expect(made.pixels).toBeLessThanOrEqual(canvas);
      expect(made.writes).toBeLessThanOrEqual(10);
    }
  });

  it('plays by no more than a map a frame', async () => {
    await settle(opened.page);
    const made = await opened.page.evaluate(async () => {
      const { ashlarCost } = globalThis as unknown as { ashlarCost: Cost };
      const play = document.querySelector('.transport .play') as HTMLElement;
      const before = { ...ashlarCost };
      play.click();
      for (let i = 0; i < 20; ++i) await new Promise((done) => requestAnimationFrame(done));
      play.click();
      return { maps: ashlarCost.maps - before.maps, curves: ashlarCost.curves - before.curves };
    });
    expect(made.curves).toBe(0);
    expect(made.maps).toBeGreaterThan(5);
    expect(made.maps).toBeLessThanOrEqual(22);
  });
});
