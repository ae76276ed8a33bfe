// vite-node pack_web.ts MODULE_FOLDER OUT_FOLDER: the analyzer's page. Of the module that tools/web built it makes
//   OUT/ashlar.html             one file, which opens from a disk
//   OUT/web/index.html          the same for a static host, with
//   OUT/web/ashlar_web.wasm     beside it, and the one file, to keep
// Scripts and styles are named by their hash in the content security policy. From a file nothing is asked for at all, and
// from a host the module alone.
import { createHash } from 'node:crypto';
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { build, type Rollup } from 'vite';
import { packLzma } from './pack_lzma';

const [from, out] = process.argv.slice(2);
if (out === undefined) throw new Error('pack_web.ts takes the folder of the module and the folder for the pages');

async function bundle(input: string): Promise<{ script: string; style: string }> {
  const made = await build({
    configFile: false, logLevel: 'warn',
    build: { write: false, target: 'es2022', modulePreload: false, cssCodeSplit: false, reportCompressedSize: false,
      rollupOptions: { input, output: { format: 'iife' } } } }) as Rollup.RollupOutput;
  const styles = made.output.flatMap((one) => (one.type === 'asset' && one.fileName.endsWith('.css') ? [String(one.source).trim()] : []));
  return { script: made.output.find((one) => one.type === 'chunk')!.code.trim(), style: styles.join('\n') };
}

const hash = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
const element = (id: string, packed: Buffer): string => `<script type="application/octet-stream" id="${id}">${packed.toString('base64')}</script>`;
const packed = (id: string, text: string): string => element(id, gzipSync(text, { level: 9 }));

// An inlined text must not hold what ends its element.
function refuse(text: string): string {
  for (const bad of ['</script', '</style', '<!--', '\r'])
    if (text.includes(bad)) throw new Error(`a part of the page holds ${JSON.stringify(bad)}, which cannot be inlined`);
  return text;
}

// The report page is shown within this one, whose policy holds for it as well.
function hashesOf(report: string, directive: string): string {
  const found = new RegExp(`${directive} ('sha256-[^;]*)`).exec(report);
  if (found === null) throw new Error(`dist/page.html has no ${directive} in its policy`);
  return found[1].trim();
}

const report = readFileSync('dist/page.html', 'utf8');
const page = await bundle('src/web/main.ts');
const worker = await bundle('src/web/worker.ts');
const script = refuse(page.script);
const style = refuse(page.style);

const policyOf = (asks: string): string => [
  "default-src 'none'", `connect-src ${asks}`, `script-src ${hash(script)} ${hashesOf(report, 'script-src')} 'wasm-unsafe-eval'`,
  `style-src ${hash(style)} ${hashesOf(report, 'style-src')}`, 'worker-src blob:', 'frame-src blob:', 'img-src data:',
  "base-uri 'none'", "form-action 'none'",
].join('; ');

function pageWith(asks: string, data: string[]): string {
  return readFileSync('web.html', 'utf8')
    .replace('@@policy@@', () => policyOf(asks))
    .replace('@@licence@@', () => ['LICENSES.txt', 'LICENSES.web.txt'].map((file) => readFileSync(file, 'utf8').trim()).join('\n'))
    .replace('@@style@@', () => style)
    .replace('@@data@@', () => data.join('\n'))
    .replace('@@script@@', () => script);
}

const module = join(from, 'ashlar_web.wasm');
const shared = [
  packed('ashlar-worker', `${readFileSync(join(from, 'ashlar_web.js'), 'utf8')}\n${worker.script}\n`),
  packed('ashlar-report', report),
];
mkdirSync(join(out, 'web'), { recursive: true });
const oneFile = pageWith("'none'", [...shared, element('ashlar-module', packLzma(readFileSync(module)))]);
for (const file of ['ashlar.html', 'web/ashlar.html']) writeFileSync(join(out, file), oneFile);
writeFileSync(join(out, 'web/index.html'), pageWith("'self'", shared));
copyFileSync(module, join(out, 'web/ashlar_web.wasm'));
