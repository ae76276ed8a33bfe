// vite-node tests/browser/shot.ts FILE.html OUT.png [WIDTH] [light|dark] [#HASH] [HEIGHT|full]: a picture of a page.
import { launch, open, settle } from './browser';

const [file, out, width = '1440', scheme = 'light', hash = '', height = 'full'] = process.argv.slice(2);
const browser = await launch();
const opened = await open(browser, file, {
  hash: hash === '-' ? '' : hash, colorScheme: scheme as 'light' | 'dark',
  viewport: { width: Number(width), height: height === 'full' ? 900 : Number(height) } });
await settle(opened.page);
await opened.page.screenshot({ path: out, fullPage: height === 'full' });
console.log(JSON.stringify({ requests: opened.requests, problems: opened.problems }));
await browser.close();
