// Makes the pages that the tests open, in build/page of the tree: by the program `ashlar report` from recorded files (its
// path in ASHLAR), and by made_document from nothing.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Diff } from '../../src/document/answers/diff';
import type { Estimate } from '../../src/document/answers/estimate';
import { makeDocument, pageWith } from '../made_document';
import { makeDryRun, makeFit, makeFleet } from '../made_parts';
import { kPages, kRecorded, kRoot, programPath } from './pages';

export default function setup(): void {
  mkdirSync(kPages, { recursive: true });
  const bundle = readFileSync(join(kRoot, 'page/dist/page.html'), 'utf8');
  writeFileSync(join(kPages, 'made.html'), pageWith(bundle, makeDocument(20000)));
  writeFileSync(join(kPages, 'made_million.html'), pageWith(bundle, makeDocument(1000000, 11, 2000)));
  const ashlar = programPath();
  const made = makeDocument(3000, 5);
  const json = (...command: string[]): unknown => ashlar === null ? null
    : JSON.parse(execFileSync(ashlar, [...command, '--json'], { cwd: kRoot, encoding: 'utf8', maxBuffer: 2 ** 30 }));
  const example = 'docs/examples/training_oom.pickle';
  made.doc.fleet = makeFleet(48);
  made.doc.dry_run = makeDryRun();
  made.doc.fit = makeFit();
  made.doc.diff = json('diff', example, example) as Diff | null;
  made.doc.estimate = json('estimate', 'conformance/models/bert.json', '--gpu', 'T4') as Estimate | null;
  const [run] = made.doc.runs;
  const columns = Object.fromEntries(Object.entries(run.columns).filter(([name]) => !/^(block|segment|extent)\./.test(name)));
  made.doc.runs.push({ ...run, kind: 'host', name: 'pinned host memory', columns });
  made.doc.inputs[0].runs.push(1);
  made.doc.inputs[0].explanation.pinned_host = {
    held_bytes: 3 * 2 ** 20, in_use_bytes: 2 ** 20, peak_held_bytes: 5 * 2 ** 20, peak_in_use_bytes: 4 * 2 ** 20, blocks: 7, events: 3000 };
  writeFileSync(join(kPages, 'parts.html'), pageWith(bundle, made));
  const ended = makeDocument(3000, 5);
  ended.doc.dry_run = { ...makeDryRun(), fits: null, ended_early: { by: 'exception', what: 'ValueError: no such file: data.bin' } };
  writeFileSync(join(kPages, 'ended.html'), pageWith(bundle, ended));
  if (ashlar === null) return;
  for (const { name, files, flags } of kRecorded) {
    if (!files.every(existsSync)) continue;
    const page = join(kPages, `${name}.html`);
    execFileSync(ashlar, ['report', ...files, ...flags, '-o', page], { stdio: ['ignore', 'ignore', 'inherit'] });
    if (files.length > 1) continue;
    const json = execFileSync(ashlar, ['explain', ...files, ...flags, '--json'], { maxBuffer: 2 ** 30 });
    writeFileSync(join(kPages, `${name}.json`), json);
  }
}
