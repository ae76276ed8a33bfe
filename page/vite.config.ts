// Bundles the page into one file, dist/page.html: a classic script and its style, both inlined and named by their hash
// in the content security policy, so that nothing else runs and nothing is asked for.
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync, rmSync } from 'node:fs';
import { defineConfig, type Plugin } from 'vite';

const hash = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;

// An inlined text must not hold what ends its element or reads as a placeholder of ours.
const refuse = (text: string, kind: string): string => {
  for (const bad of ['</script', '</style', '<!--', '\r'])
    if (text.includes(bad)) throw new Error(`the ${kind} holds ${JSON.stringify(bad)}, which cannot be inlined`);
  return text;
};

function oneFile(): Plugin {
  let out = 'dist';
  return {
    name: 'one-file',
    configResolved(config) {
      out = config.build.outDir;
    },
    closeBundle() {
      const script = refuse(readFileSync(`${out}/page.js`, 'utf8').trim(), 'script');
      const style = refuse(readFileSync(`${out}/page.css`, 'utf8').trim(), 'style');
      const policy =
        `default-src 'none'; script-src ${hash(script)}; style-src ${hash(style)}; img-src data:; base-uri 'none'; form-action 'none'`;
      const page = readFileSync('page.html', 'utf8')
        .replace('@@policy@@', () => policy)
        .replace('@@licence@@', () => readFileSync('LICENSES.txt', 'utf8').trim())
        .replace('@@style@@', () => style)
        .replace('@@script@@', () => script);
      for (const file of ['page.js', 'page.css']) rmSync(`${out}/${file}`);
      writeFileSync(`${out}/page.html`, page);
    },
  };
}

export default defineConfig({
  plugins: [oneFile()],
  build: {
    target: 'es2022',
    outDir: 'dist',
    emptyOutDir: true,
    cssCodeSplit: false,
    modulePreload: false,
    reportCompressedSize: false,
    rollupOptions: {
      input: 'src/main.ts',
      output: { format: 'iife', entryFileNames: 'page.js', assetFileNames: 'page.[ext]' },
    },
  },
});
