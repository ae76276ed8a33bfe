// vite-node tests/browser/speed_report.ts FILE.html: how fast a page opens, and what a frame costs while it zooms, slides and
// plays. Needs a machine that does nothing else; the test speed.test.ts holds the limits.
import { launch } from './browser';
import { measure } from './measure';

const browser = await launch();
for (const file of process.argv.slice(2)) console.log(file, JSON.stringify(await measure(browser, file), null, 1));
await browser.close();
