// The page in Firefox, from a file: the program's answers, the report page, and the policy.
import { dirname } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Firefox, hasFirefox, kFirefox } from './firefox';
import { expectSame, Host, kExample, kOneFile, program } from './web_page';

const name = hasFirefox() ? 'Firefox' : `Firefox (skipped: there is no ${kFirefox})`;
const kFiles = 'input[aria-label="Files"]';
const region = (label: string): string => `[role="region"][aria-label="${label}"]`;

describe.skipIf(!hasFirefox())(name, () => {
  let firefox: Firefox;
  beforeAll(async () => { firefox = await Firefox.launch(); });
  afterAll(() => firefox.end());

  it('answers as the program from a file', async () => {
    await firefox.goto(pathToFileURL(kOneFile).href);
    await firefox.give(kFiles, kExample);
    expectSame(await firefox.textOf(region('ashlar.txt')), program(['explain', 'training_oom.pickle'], dirname(kExample)));
    await firefox.run("[...document.querySelectorAll('[role=tab]')].find((tab) => tab.textContent === 'JSON').click()");
    expectSame(await firefox.textOf(region('ashlar.json')), program(['explain', '--json', 'training_oom.pickle'], dirname(kExample)));
  });

  it('shows the report page in a frame', async () => {
    await firefox.run("[...document.querySelectorAll('[role=tab]')].find((tab) => tab.textContent === 'Report page').click()");
    expect(await firefox.run("return new Promise((resolve) => { const look = () => document.querySelector('iframe.report') ? resolve(document.querySelector('iframe.report').src) : setTimeout(look, 100); look(); })")).toMatch(/^blob:/);
  });

  it('lets no request leave', async () => {
    const host = new Host(null);
    const url = await host.start();
    const ask = `return Promise.race([fetch('${url}/fetch', { mode: 'no-cors' }).then(() => 'left', () => 'stayed'), new Promise((done) => setTimeout(done, 5000, 'hung'))])`;
    await firefox.run(`document.body.append(Object.assign(new Image(), { src: '${url}/image' })); navigator.sendBeacon('${url}/beacon', 'x')`);
    expect(await firefox.run(ask)).toBe('stayed');
    expect(host.asked).toEqual([]);
    host.end();
  });
});
