// Recorded files of the shared folder, one after another in one page: the program's JSON, in Chromium and in Firefox.
import { existsSync, readdirSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';
import { launch } from '../browser/browser';
import { kRoot } from '../browser/pages';
import { Firefox, hasFirefox } from './firefox';
import { answerOf, expectSame, give, kOneFile, program, visitPage } from './web_page';

const shared = process.env.ASHLAR_SHARED_DIR ?? join(kRoot, '../shared');
const files = ['captures', 'corpus', 'reports'].map((name) => join(shared, name)).filter(existsSync)
  .flatMap((folder) => readdirSync(folder).filter((name) => /\.(gz|txt|prof)$/.test(name)).sort().map((name) => join(folder, name)));
const kEveryOfFirefox = 4;

// What the program says of those files that it explains.
const answers = new Map<string, string | null>();
for (const file of files) {
  try {
    answers.set(file, program(['explain', '--json', basename(file)], dirname(file)));
  } catch {
    // no input: what is said of those is compared in node
  }
}
const explained = [...answers.keys()];

it.skipIf(explained.length === 0)(`Chromium: ${explained.length} files`, async () => {
  const browser = await launch();
  onTestFinished(() => browser.close());
  const { page, requests, problems } = await visitPage(browser);
  for (const file of explained) {
    await give(page, file);
    await page.locator('.given', { hasText: new RegExp(`^${basename(file).replaceAll('.', '\\.')}$`) }).waitFor();
    expectSame(await answerOf(page, 'JSON', 'ashlar.json'), answers.get(file) ?? null);
  }
  expect([requests, problems]).toEqual([[], []]);
}, 600000);

const some = explained.filter((_, i) => i % kEveryOfFirefox === 0);
it.skipIf(some.length === 0 || !hasFirefox())(`Firefox: ${some.length} files`, async () => {
  const firefox = await Firefox.launch();
  onTestFinished(() => firefox.end());
  await firefox.goto(pathToFileURL(kOneFile).href);
  for (const file of some) {
    await firefox.give('input[aria-label="Files"]', file);
    await firefox.run(`return new Promise((done) => { const look = () => (document.querySelector('.refusal') !== null || document.querySelector('.given')?.textContent === ${JSON.stringify(basename(file))} ? done() : setTimeout(look, 10)); look(); })`);
    await firefox.run("[...document.querySelectorAll('[role=tab]')].find((tab) => tab.textContent === 'JSON').click()");
    expectSame(await firefox.textOf('[role="region"][aria-label="ashlar.json"]'), answers.get(file) ?? null);
  }
}, 600000);
