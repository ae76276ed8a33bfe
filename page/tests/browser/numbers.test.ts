// What the page shows of a recorded file is what `ashlar explain --json` says of it, figure for figure: the parts from the
// page's own sums at the verdict's moment, holders and pins from its own blocks.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Explanation } from '../../src/document/answers/explain';
import { bytes, percent } from '../../src/view/format';
import { launch, open } from './browser';
import { hasPage, kPages, kRecorded, pagePath, programPath } from './pages';

let browser: Browser;
beforeAll(async () => { browser = await launch(); });
afterAll(() => browser.close());

const single = kRecorded.filter(({ files }) => files.length === 1).map(({ name }) => name);

// The accounting as the text has it: its title and its rows of a name and bytes.
function saidOf(text: string): { title: string; rows: string[][] } | null {
  const lines = text.split('\n');
  const at = lines.findIndex((line) => /^WHERE .* WENT\b/.test(line));
  if (at < 0) return null;
  const end = lines.findIndex((line, i) => i > at && line === '');
  const rows = lines.slice(at + 1, end).flatMap((line) => {
    const row = /^ {2}(\S.{19}) +([\d.]+ [KMGT]?i?B)(?= |$)/.exec(line);
    return row === null || row[1].startsWith('utilisation') ? [] : [[row[1].trim(), row[2]]];
  });
  return { title: lines[at].split('   (')[0].toUpperCase(), rows };
}

describe.each(single)('%s', (name) => {
  it('has the figures of --json', async () => {
    if (!hasPage(name) || programPath() === null) return;
    const json = JSON.parse(readFileSync(join(kPages, `${name}.json`), 'utf8')) as Explanation | Explanation[];
    const truth = Array.isArray(json) ? json[0] : json;
    const { page, close } = await open(browser, pagePath(name));
    const table = (where: string): Promise<string[][]> => page.locator(`${where} tbody tr`).evaluateAll((rows) =>
      rows.map((row) => [...row.children].map((cell) => cell.textContent!.trim())));

    const shown = new Map((await table('.verdict-bytes table')).map((row) => [row[0], row[1]]));
    const { accounting } = truth;
    const text = execFileSync(programPath()!, ['explain', ...kRecorded.find((row) => row.name === name)!.files,
      ...kRecorded.find((row) => row.name === name)!.flags], { encoding: 'utf8', maxBuffer: 2 ** 30 });
    const said = saidOf(text);
    const panel = page.locator('.verdict-bytes');
    expect(await panel.count(), 'where it went').toBe(said === null ? 0 : 1);
    if (said !== null) {
      expect((await panel.locator('h2').textContent())!.toUpperCase().split(' AT ')[0]).toBe(said.title);
      expect([...shown]).toEqual(said.rows);
      const whole = accounting.total_bytes ?? accounting.reserved_bytes!;
      for (const [part, , share] of await table('.verdict-bytes table')) {
        const value = { 'live tensors': accounting.live_bytes, stranded: accounting.stranded_bytes, outside: accounting.outside_bytes }[part];
        if (value != null && share !== '') expect(share, part).toBe(percent(value / whole));
      }
      const kept = /^ {2}stranded .*(in [\d,]+ segments, behind [\d,]+ blocks in use)$/m.exec(text)?.[1];
      if (kept !== undefined && (await page.locator('.map').count()) > 0) {
        expect(await panel.locator('[data-part="stranded"] .remark').textContent()).toBe(kept);
        await expect(page.locator('#pins .faint').first().textContent()).resolves.toContain(` stranded ${kept}: `);
      }
    }
    const expected: [string, number | null][] = [
      ['live tensors', accounting.live_bytes ?? accounting.allocated_bytes], ['rounding', accounting.rounding_bytes], ['pending frees', accounting.pending_bytes],
      ['stranded', accounting.stranded_bytes], ['whole-free segments', accounting.whole_free_bytes],
      ["private pools' holes", accounting.private_pool_bytes]];
    await expect(page.locator('.headline strong').textContent()).resolves.toBe(truth.headline.split(/ {2,}/)[0]);
    await expect(page.locator('.actions pre').allTextContents()).resolves.toEqual(truth.actions.flatMap(({ lines }) => (lines.length > 0 ? [lines.join('\n')] : [])));

    if ((await page.locator('.transport').count()) > 0) {
      const moment = new Map((await table('.moment')).map((row) => [row[0], row[1]]));
      for (const [part, value] of expected)
        expect(moment.get(part) ?? moment.get(part === 'live tensors' ? 'allocated' : ''), `${part} at the moment`).toBe(value === null || value === 0 ? undefined : bytes(value));
      const lines = Object.fromEntries((await table('#holders')).map((row) => [row[3], [row[0], row[2]]]));
      const isByName = truth.held !== null; // then names come first, lines behind a button
      for (const row of isByName ? [] : truth.stacks) expect(lines[row.label], row.label).toEqual([bytes(row.bytes), row.blocks.toLocaleString('en')]);
      const [most] = truth.held?.holders ?? [];
      if (most !== undefined) expect((await table('#holders'))[0].slice(0, 3).filter((_, i) => i !== 1)).toEqual([bytes(most.bytes), most.blocks.toLocaleString('en')]);
      const pins = (await table('#pins')).filter((row) => row.length > 3);
      for (const row of truth.pins.lines) {
        const found = pins.find((pin) => pin[4] === row.label && pin[0] === bytes(row.blame_bytes));
        expect(found, `${row.label} pins ${bytes(row.blame_bytes)}`).toBeDefined();
        expect(found![1]).toBe(row.blocks.toLocaleString('en'));
        expect(found![2]).toBe(bytes(row.size_bytes));
      }
    }
    const found = truth.causes.filter((cause) => cause.finding === 'found').map((cause) => cause.sentence);
    expect(await page.locator('.causes > li .cause-head strong').allTextContents()).toEqual(found);
    const settings = (await table('#what-ifs')).map((row) => [row[3], row[4]]);
    expect(settings).toEqual(truth.what_if.map((row) => [bytes(row.peak_reserved_bytes), row.driver_calls.toLocaleString('en')]));
    await close();
  });
});
