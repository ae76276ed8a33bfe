// vite-node tests/web/measure.ts FILE...: how long the page takes from the choice of a file to the answer, in Chromium and
// Firefox, as rows of a table in Markdown; and whether its JSON is the program's.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { statSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { pathToFileURL } from 'node:url';
import { launch } from '../browser/browser';
import { programPath } from '../browser/pages';
import { Firefox, hasFirefox } from './firefox';
import { answerOf, give, kOneFile, textOf, visitPage } from './web_page';

const kMinutes = 10 * 60000;
const sha = (text: string): string => createHash('sha256').update(text).digest('hex');
const seconds = (since: number): string => `${((Date.now() - since) / 1000).toFixed(2)} s`;

interface Measured {
  time: string;
  json: string; // its hash
}

function ofProgram(file: string): Measured {
  const run = (flags: string[]): string => execFileSync(programPath()!, ['explain', ...flags, basename(file)], { cwd: dirname(file), encoding: 'utf8', maxBuffer: 2 ** 30 });
  const begin = Date.now();
  run([]);
  return { time: seconds(begin), json: sha(run(['--json'])) };
}

async function ofChromium(file: string): Promise<Measured> {
  const browser = await launch();
  const { page } = await visitPage(browser);
  page.setDefaultTimeout(kMinutes);
  const begin = Date.now();
  await give(page, file);
  await textOf(page, 'ashlar.txt');
  const time = seconds(begin);
  const json = sha(await answerOf(page, 'JSON', 'ashlar.json'));
  await browser.close();
  return { time, json };
}

async function ofFirefox(file: string): Promise<Measured> {
  const firefox = await Firefox.launch();
  await firefox.goto(pathToFileURL(kOneFile).href);
  const waitFor = (selector: string): string =>
    `return new Promise((resolve) => { const look = () => { const found = document.querySelector(${JSON.stringify(selector)}) ?? document.querySelector('.refusal'); found ? resolve(found.textContent) : setTimeout(look, 20); }; look(); })`;
  const begin = Date.now();
  await firefox.give('input[aria-label="Files"]', file);
  await firefox.run(waitFor('[aria-label="ashlar.txt"]'));
  const time = seconds(begin);
  await firefox.run("[...document.querySelectorAll('[role=tab]')].find((tab) => tab.textContent === 'JSON').click()");
  const json = sha(await firefox.run<string>(waitFor('[aria-label="ashlar.json"]')));
  await firefox.end();
  return { time, json };
}

console.log('| file | bytes | program | Chromium | Firefox | same JSON |\n|---|---|---|---|---|---|');
for (const file of process.argv.slice(2)) {
  const [program, chromium] = [ofProgram(file), await ofChromium(file)];
  const firefox = hasFirefox() ? await ofFirefox(file) : { time: 'not there', json: program.json };
  const isSame = [chromium, firefox].every(({ json }) => json === program.json);
  console.log(`| ${basename(file)} | ${statSync(file).size.toLocaleString('en')} | ${program.time} | ${chromium.time} | ${firefox.time} | ${isSame ? 'yes' : 'no'} |`);
}
