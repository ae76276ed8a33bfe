// Works the page as a reader does, in Chromium, from a file.
import { readFileSync } from 'node:fs';
import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { kIsFirefox, settle } from './browser';
import { kHostile } from '../made_document';
import { hasPage, pagePath, recorded } from './pages';
import { leave, momentOf, pixels, visit, visitNothing } from './visit';

const all = ['made', 'made_million', 'parts', ...recorded];
const hash = (page: Page): string => page.url().split('#')[1] ?? '';

describe('opening', () => {
  it.each(all)('%s asks nothing of a network and says nothing on the console', async (name) => {
    if (!hasPage(name)) return;
    const page = await visit(name);
    await expect(page.locator('.headline').first().textContent()).resolves.not.toBe('');
    expect(await page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth)).toBe(true);
  });

  it.each([[360, 740], [768, 1000], [1920, 1080]])('fits a screen %i wide', async (width, height) => {
    for (const name of ['made', 'fragmented', 'two'].filter(hasPage)) {
      const page = await visit(name, { viewport: { width, height } });
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(width);
      await leave();
    }
  });

  it('refuses a document of another version in one line', async () => {
    const text = readFileSync(pagePath('made'), 'utf8').replace('"format":"ashlar-page","version":1', '"format":"ashlar-page","version":9');
    const page = await visitNothing();
    await page.setContent(text);
    await expect(page.getByRole('alert').textContent()).resolves.toContain('version 1');
    await page.context().close();
  });
});

describe('the curves', () => {
  it('leave the wheel to the page, and pan by it only where a part is shown', async () => {
    const page = await visit('made');
    for (const plot of [page.locator('.work .curve .u-over').nth(0), page.locator('.work .curve .u-over').nth(1)]) {
      await page.evaluate(() => scrollTo(0, 0));
      await plot.scrollIntoViewIfNeeded();
      const before = await page.evaluate(() => scrollY);
      const box = (await plot.boundingBox())!;
      await page.mouse.move(box.x + 300, box.y + 80);
      await page.mouse.wheel(0, 200);
      await page.waitForFunction((y) => scrollY > y + 100, before);
      await settle(page);
      expect(hash(page)).not.toContain('a=');
    }
    const canceled = (init: { deltaX?: number; deltaY?: number; ctrlKey?: boolean }): Promise<boolean> => page.evaluate((options) => {
      const over = document.querySelector('.work .curve .u-over')!;
      const clientX = over.getBoundingClientRect().left + 50;
      return !over.dispatchEvent(new WheelEvent('wheel', { ...options, bubbles: true, cancelable: true, clientX }));
    }, init);
    expect(await canceled({ deltaX: 80 })).toBe(false); // all is shown: nothing to pan
    expect(await canceled({ deltaY: -80, ctrlKey: true })).toBe(true);
    await settle(page);
    expect(await canceled({ deltaX: 80 })).toBe(true);
    expect(await canceled({ deltaY: 80 })).toBe(false);
  });

  it('tell their values under the pointer', async () => {
    const page = await visit('made');
    const box = (await page.locator('.work .curve .u-over').first().boundingBox())!;
    await page.mouse.move(box.x + box.width / 2, box.y + 60);
    const tip = page.locator('.work .curve .tip').first();
    await tip.waitFor();
    const at = Number(/^event ([\d,]+)/.exec((await tip.textContent())!)![1].replaceAll(',', ''));
    expect(Math.abs(at - 10000)).toBeLessThan(40);
    await page.locator('.transport input[type=range]').fill(String(at + 1)); // moment 0 stands before event 0
    await settle(page);
    for (const line of ['reserved', 'allocated', 'stranded']) {
      const value = await page.locator('.curves .legend label', { hasText: line }).locator('.slot').textContent();
      await expect(tip.textContent()).resolves.toContain(`${line} ${value}`);
    }
    await page.mouse.move(box.x + box.width / 2, box.y - 60);
    await tip.waitFor({ state: 'hidden' });
  });

  it('zoom by Ctrl and wheel, drag and keys, pan, and come back whole', async () => {
    const page = await visit('made');
    const whole = await pixels(page, '.work .curve canvas');
    const over = (await page.locator('.work .curve .u-over').first().boundingBox())!;
    await page.mouse.move(over.x + 300, over.y + 80);
    await page.keyboard.down('Control');
    await page.mouse.wheel(0, -300);
    await page.keyboard.up('Control');
    await settle(page);
    expect(hash(page)).toMatch(/a=[\d.]+&b=[\d.]+/);
    const zoomed = await pixels(page, '.work .curve canvas');
    expect(zoomed).not.toBe(whole);
    await page.keyboard.down('Shift');
    await page.mouse.down();
    await page.mouse.move(over.x + 200, over.y + 80, { steps: 3 });
    await page.mouse.up();
    await page.keyboard.up('Shift');
    await settle(page);
    expect(await pixels(page, '.work .curve canvas')).not.toBe(zoomed);
    await page.locator('.work .curve').first().press('0');
    await settle(page);
    expect(await pixels(page, '.work .curve canvas')).toBe(whole);
    await page.mouse.move(over.x + 100, over.y + 80);
    await page.mouse.down();
    await page.mouse.move(over.x + 180, over.y + 80, { steps: 4 });
    await page.mouse.up();
    await settle(page);
    const [, a, b] = /a=([\d.]+)&b=([\d.]+)/.exec(hash(page))!;
    expect((Number(b) - Number(a)) / 20000).toBeCloseTo(80 / over.width, 2);
    await page.getByRole('button', { name: 'Whole run' }).click();
    await settle(page);
    expect(hash(page)).not.toContain('a=');
  });

  it.skipIf(kIsFirefox)('zoom and pan by two fingers, and a finger sets the moment', async () => {
    const page = await visit('made', { viewport: { width: 390, height: 800 }, hasTouch: true, isMobile: true });
    const session = await page.context().newCDPSession(page);
    const touch = (type: 'touchStart' | 'touchMove' | 'touchEnd', ...xs: number[]): Promise<unknown> =>
      session.send('Input.dispatchTouchEvent', { type, touchPoints: xs.map((x, id) => ({ x, y: over.y + 80, id })) });
    await page.locator('.work .curve').first().scrollIntoViewIfNeeded();
    const over = (await page.locator('.work .curve .u-over').first().boundingBox())!;
    const at = (share: number): number => over.x + share * over.width;
    const window = (): [number, number] => {
      const [, a, b] = /a=([\d.]+)&b=([\d.]+)/.exec(hash(page))!;
      return [Number(a), Number(b)];
    };
    await touch('touchStart', at(0.4), at(0.6));
    for (let i = 1; i <= 5; ++i) await touch('touchMove', at(0.4 - 0.04 * i), at(0.6 + 0.04 * i));
    await touch('touchEnd');
    await settle(page);
    const [a, b] = window();
    expect((b - a) / 20000).toBeCloseTo(0.2 / 0.6, 1); // what two fingers held apart by a fifth is now three fifths wide
    expect((a + b) / 2 / 20000).toBeCloseTo(0.5, 1);
    await touch('touchStart', at(0.3), at(0.7));
    for (let i = 1; i <= 5; ++i) await touch('touchMove', at(0.3 + 0.04 * i), at(0.7 + 0.04 * i));
    await touch('touchEnd');
    await settle(page);
    expect(window()[1] - window()[0]).toBeCloseTo(b - a, -1);
    expect(window()[0]).toBeLessThan(a - (b - a) / 10);
    const moment = await momentOf(page);
    await touch('touchStart', at(0.1));
    await touch('touchEnd');
    await settle(page);
    expect(await momentOf(page)).not.toBe(moment);
    expect(await momentOf(page)).toBeCloseTo(window()[0] + 0.1 * (b - a), -3);
  });

  it('show the time of a clock', async () => {
    if (hasPage('fragmented')) await visit('fragmented', { hash: '#x=time' }); // without problems
  });

  it('show time or events, and hide a line', async () => {
    const page = await visit('made', { hash: '#x=time' });
    await page.getByLabel('Horizontal axis').selectOption('event');
    await settle(page);
    const before = await pixels(page, '.work .curve canvas');
    await page.getByLabel('Horizontal axis').selectOption('time');
    await settle(page);
    expect(hash(page)).toContain('x=time');
    expect(await pixels(page, '.work .curve canvas')).not.toBe(before);
    await page.getByLabel('Horizontal axis').selectOption('event');
    await page.getByRole('checkbox', { name: /^stranded/ }).uncheck();
    await settle(page);
    expect(await pixels(page, '.work .curve canvas')).not.toBe(before);
  });
});

describe('the moment', () => {
  it('follows the slider, the keys and a click, and the map and the figures follow it', async () => {
    const page = await visit('made');
    const map = await pixels(page, '.map canvas.rows');
    const start = await momentOf(page);
    await page.locator('.transport input[type=range]').fill('12000');
    await settle(page);
    expect(await pixels(page, '.map canvas.rows')).not.toBe(map);
    expect(hash(page)).toContain('m=12000');
    expect(await page.locator('#moment-status').textContent()).toContain('event 11,999');
    await page.locator('.work .curve').first().press('ArrowRight');
    await settle(page);
    expect(await momentOf(page)).toBe(12001);
    await page.locator('.work .curve').first().press('PageUp');
    await settle(page);
    expect(await momentOf(page)).toBe(11901);
    const over = (await page.locator('.work .curve .u-over').first().boundingBox())!;
    await page.mouse.click(over.x + over.width / 2, over.y + 100);
    await settle(page);
    expect(Math.abs((await momentOf(page)) - 10000)).toBeLessThan(40);
    await page.getByRole('button', { name: 'To the moment of the verdict' }).click();
    await settle(page);
    expect(await momentOf(page)).toBe(start);
    expect(await pixels(page, '.map canvas.rows')).toBe(map);
  });

  it('plays and pauses', async () => {
    const page = await visit('made');
    await page.locator('.transport input[type=range]').fill('100');
    await page.getByRole('button', { name: 'Play' }).click();
    await page.waitForTimeout(700);
    await page.getByRole('button', { name: 'Pause' }).click();
    await settle(page);
    const there = await momentOf(page);
    expect(there).toBeGreaterThan(300);
    await page.waitForTimeout(200);
    expect(await momentOf(page)).toBe(there);
  });

  it('is sent in the address, and "back" returns', async () => {
    const page = await visit('made', { hash: '#m=777&c=size&l=rows' });
    expect(await momentOf(page)).toBe(777);
    await expect(page.getByLabel('Colour by').inputValue()).resolves.toBe('size');
    await expect(page.getByLabel('Layout').inputValue()).resolves.toBe('rows');
    await page.getByRole('button', { name: 'To the peak of allocated memory' }).click();
    await settle(page);
    expect(await momentOf(page)).not.toBe(777);
    await page.goBack();
    await settle(page);
    expect(await momentOf(page)).toBe(777);
  });
});

describe('the blocks over time', () => {
  // Near the foot of the stack at a moment, where a block lies that has been there for long.
  const bandOf = (page: Page, moment: number): Promise<{ x: number; y: number }> => page.locator('#bands .u-over').evaluate((over, m) => {
    const box = over.getBoundingClientRect();
    return { x: box.left + ((m + 0.5) / 20000) * box.width, y: box.bottom - 6 };
  }, moment);

  it('name the block under the pointer, and a click keeps it', async () => {
    const page = await visit('made');
    await page.locator('#bands').scrollIntoViewIfNeeded();
    const { x, y } = await bandOf(page, 10900);
    await page.mouse.move(x, y);
    const tip = page.locator('#bands .tip');
    await expect(tip.textContent()).resolves.toMatch(/[KM]iB.*model\.py:\d+ layer\d+.*since event [\d,]+.*until event [\d,]+.*allocated here/);
    const size = (await tip.locator('strong').textContent())!;
    const [, since] = /since event ([\d,]+)/.exec((await tip.textContent())!)!;
    const before = await pixels(page, '#bands canvas');
    await page.mouse.click(x, y);
    await settle(page);
    expect(hash(page)).toMatch(/k=\d+/);
    const life = page.locator('.block-life');
    await expect(life.textContent()).resolves.toMatch(new RegExp(`^Block${size} live.*Allocatedevent ${since}`));
    expect(await life.evaluate((element) => element.getBoundingClientRect().top >= 0 && element.getBoundingClientRect().top < innerHeight)).toBe(true);
    expect(await pixels(page, '#bands canvas')).not.toBe(before);
  });

  it('are another picture in each colour, and when they are zoomed', async () => {
    const page = await visit('made');
    const choice = page.getByLabel('Colour of the bands');
    const colours = await choice.locator('option').evaluateAll((list) => list.map((o) => (o as HTMLOptionElement).value));
    expect(colours).toEqual(['name', 'stack', 'phase', 'size']);
    const seen = new Set<number>();
    for (const by of colours) {
      await choice.selectOption(by);
      await settle(page);
      seen.add(await pixels(page, '#bands canvas'));
    }
    await page.locator('#bands .curve').press('+');
    await settle(page);
    seen.add(await pixels(page, '#bands canvas'));
    expect(seen.size).toBe(colours.length + 1);
  });

  it('show names as text', async () => {
    const page = await visit('made', { hash: '#d=name' });
    await expect(page.locator('#bands .legend').textContent()).resolves.toContain(kHostile);
    expect(await page.locator('main img').count()).toBe(0);
    expect(await page.title()).toBe('made');
  });

  it('say what has no band of its own', async () => {
    const page = await visit('made_million');
    await expect(page.locator('#bands').textContent()).resolves.toMatch(/50,000 of \d\d\d,\d\d\d blocks have a band of their own.*grey band on top is the others: [\d.]+ % of all bytes/);
  });
});

describe('the events', () => {
  it('are found by address and size, and only those in sight are in the document', async () => {
    const page = await visit('made', { hash: '#m=9000' });
    const events = page.locator('#events');
    await events.scrollIntoViewIfNeeded();
    const options = events.getByRole('option');
    await options.first().waitFor();
    await settle(page);
    expect(await options.count()).toBeLessThan(20);
    await expect(events.getByRole('option', { selected: true }).textContent()).resolves.toMatch(/^8,999/); // moment 9,000 stands after it
    const all = Number((await options.first().getAttribute('aria-setsize'))!);
    expect(all).toBeGreaterThan(19000);
    const [, at] = /(0x[\da-f]+)/.exec((await events.getByRole('option', { selected: true }).textContent())!)!;
    const search = page.getByLabel('Search: Events, by address, size or line');
    await search.fill(at);
    await page.waitForFunction(() => / of /.test(document.querySelector('#events [role=status]')!.textContent!));
    for (const row of await options.allTextContents()) expect(Number(/0x[\da-f]+/.exec(row)![0])).toBeLessThanOrEqual(Number(at));
    await search.fill('>= 1 MiB');
    await page.waitForFunction((n) => Number(document.querySelector('#events [role=option]')?.getAttribute('aria-setsize')) > 50 && n > 0, all);
    for (const row of await options.allTextContents()) expect(row).toContain('MiB');
    await events.getByRole('listbox').press('End');
    await events.getByRole('listbox').press('Enter');
    await settle(page);
    expect(hash(page)).toMatch(/k=\d+/);
    await expect(events.getByRole('option', { selected: true }).textContent()).resolves.toContain(`${((await momentOf(page)) - 1).toLocaleString('en')}`);
    await search.fill('nothing of the kind');
    await page.waitForFunction(() => document.querySelector('#events [role=status]')!.textContent === 'nothing matches');
  });

  it('of a million are scrolled to both ends', async () => {
    const page = await visit('made_million');
    const list = page.locator('#events [role=listbox]');
    await list.scrollIntoViewIfNeeded();
    await page.locator('#events [role=option]').first().waitFor({ timeout: 20000 });
    await list.press('End');
    const all = await page.locator('#events [role=option]').first().getAttribute('aria-setsize');
    expect(Number(all)).toBeGreaterThan(990000);
    await expect(page.locator('#events [aria-selected=true]').getAttribute('aria-posinset')).resolves.toBe(all);
    await list.evaluate((element) => element.scrollTo(0, 0));
    await settle(page);
    await expect(page.locator('#events [role=option]').first().getAttribute('aria-posinset')).resolves.toBe('1');
  });
});

describe('the settings', () => {
  it('stand in a table, as text', async () => {
    const page = await visit('made');
    await expect(page.locator('#settings tr').allTextContents()).resolves.toEqual([`PYTORCH_CUDA_ALLOC_CONF${kHostile}`, 'expandable_segmentsFalse']);
    expect(await page.locator('main img').count()).toBe(0);
    if (hasPage('failed')) await expect((await leave(), await visit('failed')).locator('#settings').textContent()).resolves.toContain('expandable_segments');
  });
});

describe('what is clicked', () => {
  it('comes into sight', async () => {
    const page = await visit('made', { viewport: { width: 390, height: 800 } });
    const isSeen = (selector: string): Promise<boolean> => page.locator(selector).evaluate((element) => {
      const { top, bottom } = element.getBoundingClientRect();
      return top < innerHeight - 100 && bottom > 100;
    });
    await page.locator('.map canvas.rows').scrollIntoViewIfNeeded();
    const box = (await page.locator('.map canvas.rows').boundingBox())!;
    expect(await isSeen('.block-life')).toBe(false);
    await page.mouse.click(box.x + 60, box.y + 6);
    await settle(page);
    expect(await isSeen('.block-life')).toBe(true);
    await page.locator('#holders tbody button').first().click();
    await settle(page);
    expect(await isSeen('.map')).toBe(true);
  });
});

describe('the map', () => {
  it('tells the block under the pointer, and shows the life of the chosen one', async () => {
    const page = await visit('made');
    await page.locator('.map canvas.rows').scrollIntoViewIfNeeded();
    const box = (await page.locator('.map canvas.rows').boundingBox())!;
    await page.mouse.move(box.x + 60, box.y + 6);
    await expect(page.locator('.map .tip').textContent()).resolves.toMatch(/(live|pending).*model\.py:\d+ layer\d+.*requested.*0x/);
    await page.mouse.click(box.x + 60, box.y + 6);
    await settle(page);
    const life = page.locator('.block-life');
    await expect(life.textContent()).resolves.toMatch(/Addressx?0x[\da-f]+.*Allocated.*event/);
    await expect(life.locator('.stack li').first().textContent()).resolves.toMatch(/model\.py/);
    const marked = await pixels(page, '.map canvas.rows');
    await life.getByRole('button', { name: 'Mark all of its line' }).click();
    await settle(page);
    expect(await pixels(page, '.map canvas.rows')).not.toBe(marked);
    await page.getByRole('button', { name: 'Clear marks' }).click();
    await settle(page);
    expect(hash(page)).not.toMatch(/[ks]=/);
  });

  it('has segments with holes first, or all by address, and leaves out private pools', async () => {
    const page = await visit('made');
    const first = await pixels(page, '.map canvas.rows');
    await page.getByLabel('Order').selectOption('address');
    await settle(page);
    expect(await pixels(page, '.map canvas.rows')).not.toBe(first);
    expect(await page.getByLabel('private pools').count()).toBe(0);
    if (!hasPage('private_pools')) return;
    await leave();
    const other = await visit('private_pools');
    const [map, bands] = [await pixels(other, '.map canvas.rows'), await pixels(other, '#bands canvas')];
    await other.getByLabel('private pools').uncheck();
    await settle(other);
    expect(await pixels(other, '.map canvas.rows')).not.toBe(map);
    expect(await pixels(other, '#bands canvas')).not.toBe(bands);
    expect(hash(other)).toContain('v=0');
  });

  it('is walked by keys and speaks', async () => {
    const page = await visit('made');
    await page.locator('.map-scroll').focus();
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('ArrowRight');
    await expect(page.locator('.map-panel [role=status]').textContent()).resolves.toMatch(/^Block 2 of \d+: .* (live|pending), .*0x/);
    await page.keyboard.press('Enter');
    await settle(page);
    expect(hash(page)).toMatch(/k=\d+/);
    await page.keyboard.press('Escape');
    await settle(page);
    expect(hash(page)).not.toMatch(/k=\d+/);
  });

  it('is another picture in each colour and layout', async () => {
    const page = await visit('made');
    const seen = new Set<number>();
    const colours = await page.getByLabel('Colour by').locator('option').evaluateAll((list) => list.map((o) => (o as HTMLOptionElement).value));
    expect(colours).toEqual(expect.arrayContaining(['state', 'stack', 'phase', 'size', 'age']));
    for (const by of colours) {
      await page.getByLabel('Colour by').selectOption(by);
      await settle(page);
      seen.add(await pixels(page, '.map canvas.rows'));
    }
    expect(seen.size).toBe(colours.length);
    await page.getByLabel('Layout').selectOption('rows');
    await settle(page);
    expect(seen.has(await pixels(page, '.map canvas.rows'))).toBe(false);
    const plain = await pixels(page, '.map canvas.rows');
    await page.getByLabel('mark pins').check();
    await settle(page);
    expect(await pixels(page, '.map canvas.rows')).not.toBe(plain);
  });
});

describe('tables', () => {
  it('find, sort and copy', async () => {
    const page = await visit('made', { hash: '#g=line' });
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']).catch(() => undefined);
    const rows = page.locator('#holders tbody tr');
    const every = await rows.count();
    await page.getByLabel('Search: Who holds it').fill('layer1');
    const found = await rows.allTextContents();
    expect(found.length).toBeGreaterThan(0);
    expect(found.length).toBeLessThan(every);
    for (const row of found) expect(row).toContain('layer1');
    await page.getByLabel('Search: Who holds it').fill('');
    await page.locator('#holders').getByRole('button', { name: 'Blocks', exact: true }).click();
    const counts = (await rows.locator('td:nth-child(3)').allTextContents()).map(Number);
    expect(counts).toEqual([...counts].sort((a, b) => b - a));
    await page.getByLabel('Search: Who holds it').fill('nothing of the kind');
    await expect(page.locator('#holders [role=status]').last().textContent()).resolves.toBe('nothing matches');
  });

  it('open and close frames of the flame graph', async () => {
    const page = await visit('made');
    const first = page.locator('.flame').nth(2);
    const name = (await first.getAttribute('aria-label'))!.split(':')[0];
    await first.click();
    await expect(page.locator('.flame').first().getAttribute('aria-label')).resolves.toContain(name);
    await page.locator('.flame').first().click();
    await expect(page.locator('.flame').first().getAttribute('aria-label')).resolves.toContain('train.py');
  });
});

describe('a recorded failure', () => {
  it('jumps to a cause and marks its blocks', async () => {
    if (!hasPage('fragmented')) return;
    const page = await visit('fragmented');
    const before = await pixels(page, '.map canvas.rows');
    await page.locator('#causes').getByRole('button', { name: /^Show/ }).first().click();
    await settle(page);
    expect(hash(page)).toContain('e=0');
    expect(await pixels(page, '.map canvas.rows')).not.toBe(before);
    await page.evaluate(() => history.back());
    await page.waitForFunction(() => !location.hash.includes('e=0'));
    await settle(page);
    expect(await pixels(page, '.map canvas.rows')).toBe(before);
  });

  it('lays a what-if over the curves and shows its map', async () => {
    if (!hasPage('fragmented')) return;
    const page = await visit('fragmented');
    const before = await pixels(page, '.work .curve canvas');
    const settings = page.locator('#what-ifs');
    expect(await settings.getByRole('checkbox', { name: 'Curve of expandable_segments:True' }).isChecked()).toBe(true); // as advised
    await settings.getByRole('radio', { name: 'Map of max_split_size_mb:64' }).click();
    await settle(page);
    await page.locator('.maps.two figure:nth-child(2) canvas.rows').waitFor();
    expect(await pixels(page, '.work .curve canvas')).not.toBe(before);
    expect(await pixels(page, '.maps figure:nth-child(2) canvas.rows')).not.toBe(await pixels(page, '.maps figure:nth-child(1) canvas.rows'));
    await expect(page.locator('.legend.overlays').textContent()).resolves.toContain('max_split_size_mb:64');
    await settings.getByRole('checkbox', { name: 'Curve of max_split_size_mb:64' }).uncheck();
    await settings.getByRole('radio', { name: 'Map of max_split_size_mb:64' }).click();
    await settle(page);
    expect(await page.locator('.maps figure').count()).toBe(1);
    expect(await pixels(page, '.work .curve canvas')).toBe(before);
  });

  it('goes on through what is projected', async () => {
    if (!hasPage('fragmented')) return;
    const page = await visit('fragmented', { hash: '#w=2' });
    const recorded = await pixels(page, '.maps figure:nth-child(1) canvas.rows');
    await page.locator('.maps.two figure:nth-child(2) canvas.rows').waitFor();
    const under = await pixels(page, '.maps figure:nth-child(2) canvas.rows');
    await page.locator('.work .curve').first().press('End');
    await settle(page);
    await expect(page.locator('.moment-text').textContent()).resolves.toMatch(/^projected, [\d,]+ requests on$/);
    expect(await pixels(page, '.maps figure:nth-child(1) canvas.rows')).toBe(recorded);
    expect(await pixels(page, '.maps figure:nth-child(2) canvas.rows')).not.toBe(under);
  });

  it('copies the line to paste', async () => {
    if (!hasPage('fragmented')) return;
    const page = await visit('fragmented');
    await page.getByRole('button', { name: 'Copy the line' }).click();
    await page.waitForTimeout(50);
    await expect(page.getByRole('button', { name: 'Copy the line' }).textContent()).resolves.toMatch(/^Copied/);
  });

  it('shows several inputs side by side and changes between them', async () => {
    if (!hasPage('two')) return;
    const page = await visit('two');
    const headline = await page.locator('.headline').textContent();
    const heading = await page.locator('h1').textContent();
    await page.locator('.multiples figure').nth(1).getByRole('button').click();
    await settle(page);
    await page.waitForFunction(() => document.documentElement.dataset.ready === 'all');
    expect(await page.locator('.headline').textContent()).not.toBe(headline);
    expect(await page.locator('h1').textContent()).not.toBe(heading);
    expect(await page.title()).toContain(await page.locator('h1').textContent());
    await page.evaluate(() => history.back());
    await settle(page);
    expect(await page.locator('.headline').textContent()).toBe(headline);
  });
});
