// vite-node tests/browser/looks.ts FOLDER PAGE.html...: pictures of pages to be looked at, in each width and scheme, as
// FOLDER/PAGE_WIDTH_SCHEME_BROWSER.png, and what a machine finds at fault in their layout. ASHLAR_BROWSER=firefox: in Firefox.
import { mkdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { kIsFirefox, launch, open, settle } from './browser';
import { layOutAll, layoutFaults } from './layout';
import { kWidths } from './pages';

const [folder, ...files] = process.argv.slice(2);
mkdirSync(folder, { recursive: true });
const browser = await launch();
for (const file of files)
  for (const width of kWidths)
    for (const colorScheme of ['light', 'dark'] as const) {
      const opened = await open(browser, file, { colorScheme, viewport: { width, height: 900 } });
      await settle(opened.page);
      await layOutAll(opened.page);
      const name = `${basename(file, '.html')}_${width}_${colorScheme}_${kIsFirefox ? 'firefox' : 'chromium'}`;
      for (const line of [...opened.problems, ...(await layoutFaults(opened.page))]) console.log(`${name}: ${line}`);
      await opened.page.screenshot({ path: join(folder, `${name}.png`), fullPage: true });
      await opened.close();
    }
await browser.close();
