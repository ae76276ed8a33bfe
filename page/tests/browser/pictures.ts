// vite-node tests/browser/pictures.ts [FOLDER]: the pictures of the guide, docs/guide/report_*.webp, of pages that the program makes of
// docs/examples. The program is that of the tree, or ASHLAR.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import type { Browser } from 'playwright-core';
import { launch, open, settle } from './browser';
import { kRoot, programPath } from './pages';

const kPictures: { picture: string; file: string; flags: string[]; colorScheme: 'light' | 'dark' }[] = [
  { picture: 'fragmented', file: 'training_oom.pickle', flags: ['--capacity', '12GiB'], colorScheme: 'light' },
  { picture: 'leak', file: 'answers/leak.pickle.xz', flags: [], colorScheme: 'light' },
  { picture: 'healthy', file: 'answers/healthy.pickle.xz', flags: [], colorScheme: 'dark' },
  { picture: 'failed', file: 'answers/capacity.pickle.xz', flags: [], colorScheme: 'light' },
];
const kSize = { width: 1440, height: 1640 };
const kWidth = 1200; // of a picture
const kQuality = 0.6;

// Chromium takes pictures as PNG, and packs what it has drawn as WebP.
async function webpOf(browser: Browser, png: Buffer): Promise<Buffer> {
  const page = await browser.newPage();
  const url = await page.evaluate(async ([data, width, quality]) => {
    const image = await createImageBitmap(await (await fetch(`data:image/png;base64,${data}`)).blob());
    const height = Math.round((width * image.height) / image.width);
    const canvas = Object.assign(document.createElement('canvas'), { width, height });
    const context = Object.assign(canvas.getContext('2d')!, { imageSmoothingQuality: 'high' });
    context.drawImage(image, 0, 0, width, height);
    return canvas.toDataURL('image/webp', quality);
  }, [png.toString('base64'), kWidth, kQuality] as const);
  await page.close();
  return Buffer.from(url.split(',')[1], 'base64');
}

const program = programPath();
if (program === null) throw new Error('pictures.ts: there is no program: build it, or name it by ASHLAR');
const [folder = join(kRoot, 'docs/guide')] = process.argv.slice(2);
const scratch = mkdtempSync(join(tmpdir(), 'ashlar_pictures_'));
const browser = await launch();
for (const { picture, file, flags, colorScheme } of kPictures) {
  const html = join(scratch, `${picture}.html`);
  execFileSync(program, ['report', join(kRoot, 'docs/examples', file), ...flags, '-o', html]);
  const opened = await open(browser, html, { viewport: kSize, colorScheme });
  await settle(opened.page);
  const out = join(folder, `report_${picture}.webp`);
  const webp = await webpOf(browser, await opened.page.screenshot());
  writeFileSync(out, webp);
  console.log(`${basename(out)}: ${webp.length} bytes, of ${file}`);
  await opened.close();
}
await browser.close();
rmSync(scratch, { recursive: true });
