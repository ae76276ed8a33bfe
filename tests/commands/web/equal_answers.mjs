// node equal_answers.mjs PROGRAM MODULE_FOLDER [FILE...]: the module of WebAssembly answers as the program does.
//
// Every file of the tests, of docs/examples and, where it is there, of the shared folder is explained by both: the same JSON
// byte for byte, or the same refusal. What needs a library of the system (xz, zstd, SQLite) has none in a page: the module must
// say so, and this counts as skipped. So are cuts and flips of the inputs among them, other answers (text, page, diff, sweep),
// and several files together. ASHLAR_WEB_SEED draws other cuts and flips. The last line counts.
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const [program, moduleFolder, ...named] = process.argv.slice(2);
const root = join(dirname(fileURLToPath(import.meta.url)), '../../..');
const shared = process.env.ASHLAR_SHARED_DIR ?? join(root, '../shared');
const seed = Number(process.env.ASHLAR_WEB_SEED ?? 1);
const kMostBytes = 64 * 2 ** 20;
const kDamagedInputs = 60;
const kDamagesEach = 6;
const kAtOnce = 3; // processes of the program

const require = createRequire(import.meta.url);
const Ashlar = require(join(moduleFolder, 'ashlar_web.js'));
const compiled = await WebAssembly.compile(readFileSync(join(moduleFolder, 'ashlar_web.wasm')));
const template = readFileSync(join(root, 'page/dist/page.html'), 'utf8');

// A module of its own for each case, as in the page.
async function freshModule() {
  const lines = [];
  const module = await Ashlar({
    print: () => {}, printErr: (line) => lines.push(line),
    instantiateWasm: (imports, take) => { WebAssembly.instantiate(compiled, imports).then((instance) => take(instance)); return {}; } });
  const withText = (text, use) => {
    const bytes = new TextEncoder().encode(text);
    const at = module._malloc(bytes.length + 1) >>> 0;
    module.HEAPU8.set(bytes, at);
    module.HEAPU8[at + bytes.length] = 0;
    const status = use(at);
    module._free(at);
    return status;
  };
  const said = () => {
    const at = module._ashlar_web_said() >>> 0;
    return Buffer.from(module.HEAPU8.subarray(at, at + module._ashlar_web_said_size()));
  };
  return {
    set: (key, value) => withText(key, (k) => withText(value, (v) => module._ashlar_web_set(k, v))),
    read(name, bytes) {
      const at = module._ashlar_web_reserve(bytes.length) >>> 0;
      module.HEAPU8.set(bytes, at);
      return withText(name, (n) => module._ashlar_web_read(n, at, bytes.length));
    },
    answer: (what) => withText(what, (w) => module._ashlar_web_answer(w)),
    said, lines,
  };
}

// { text } or { refusal }, both as bytes in latin1, so that they compare byte by byte.
async function askModule(files, what, settings = {}) {
  const module = await freshModule();
  try {
    if (what === 'page') module.set('template', template);
    for (const [key, value] of Object.entries(settings)) if (module.set(key, value) !== 0) return { refusal: module.said().toString('latin1') };
    for (const { name, bytes } of files) if (module.read(name, bytes) !== 0) return { refusal: module.said().toString('latin1') };
    const status = module.answer(what);
    return status === 0 ? { text: module.said().toString('latin1') } : { refusal: module.said().toString('latin1') };
  } catch (error) {
    return { refusal: `the module ended: ${error}: ${module.lines.join(' ')}` };
  }
}

const askProgram = (args) => new Promise((resolve) => {
  execFile(program, args, { cwd: root, encoding: 'buffer', maxBuffer: 2 ** 30 }, (error, stdout, stderr) => {
    const line = stderr.toString('latin1').trim().replace(/^ashlar: /, '');
    resolve(error === null ? { text: stdout.toString('latin1') } : { refusal: line });
  });
});

let passed = 0;
let failed = 0;
let skipped = 0;
const counts = { answers: 0, refusals: 0 };

const kNoLibrary = /\.so\.\d+ is not here: install /;

function compare(what, ours, theirs) {
  if (kNoLibrary.test(ours.refusal ?? '') && theirs.refusal !== ours.refusal) {
    ++skipped;
    return;
  }
  const isEqual = ours.text === theirs.text && ours.refusal === theirs.refusal;
  if (isEqual) {
    ++passed;
    ++counts[ours.text === undefined ? 'refusals' : 'answers'];
    return;
  }
  ++failed;
  const short = (one) => (one.refusal === undefined ? `an answer of ${one.text.length} bytes` : JSON.stringify(one.refusal.slice(0, 300)));
  console.log(`differs: ${what}\n  program: ${short(theirs)}\n  module:  ${short(ours)}`);
  if (ours.text !== undefined && theirs.text !== undefined) {
    let at = 0;
    while (ours.text[at] === theirs.text[at]) ++at;
    const around = (text) => JSON.stringify(text.slice(Math.max(0, at - 60), at + 60));
    console.log(`  from byte ${at} on\n  program: ${around(theirs.text)}\n  module:  ${around(ours.text)}`);
  }
}

function* filesBelow(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const path = join(folder, entry.name);
    if (entry.isDirectory() && !['node_modules', '__pycache__'].includes(entry.name)) yield* filesBelow(path);
    else if (entry.isFile() && statSync(path).size <= kMostBytes) yield path;
  }
}

async function inTurn(cases, run) {
  const waiting = cases[Symbol.iterator]();
  const one = async () => { for (let next = waiting.next(); !next.done; next = waiting.next()) await run(next.value); };
  await Promise.all(Array.from({ length: kAtOnce }, one));
}

async function explainBoth(path, name) {
  const theirs = await askProgram(['explain', '--json', name]);
  const ours = await askModule([{ name, bytes: readFileSync(path) }], 'json');
  compare(name, ours, theirs);
  return theirs.text !== undefined;
}

// Numbers from 0 to below `end`, the same in every run of a seed.
function* numbers(end) {
  for (let state = (seed * 2654435761) >>> 0; ;) {
    state = (Math.imul(state ^ (state >>> 15), 2246822519) + 3266489917) >>> 0;
    yield Math.floor((((state ^ (state >>> 13)) >>> 0) / 2 ** 32) * end);
  }
}

// Half of them cut somewhere, half with some bytes flipped.
function* damagesOf(bytes) {
  const at = numbers(bytes.length);
  const bit = numbers(8);
  for (let i = 0; i < kDamagesEach; ++i) {
    if (i % 2 === 0) {
      yield Buffer.from(bytes.subarray(0, at.next().value));
      continue;
    }
    const flipped = Buffer.from(bytes);
    for (let n = 0; n < 1 + 4 * i; ++n) flipped[at.next().value] ^= 1 << bit.next().value;
    yield flipped;
  }
}

async function compareDamaged(inputs) {
  const scratch = mkdtempSync(join(tmpdir(), 'ashlar_web_'));
  const every = Math.max(1, Math.floor(inputs.length / kDamagedInputs));
  const cases = [];
  inputs.filter((_, i) => i % every === 0).forEach((path, i) => {
    let n = 0;
    for (const bytes of damagesOf(readFileSync(path))) cases.push({ name: join(scratch, `${i}_${n++}`), bytes });
  });
  await inTurn(cases, async ({ name, bytes }) => {
    writeFileSync(name, bytes);
    await explainBoth(name, name);
    rmSync(name);
  });
  rmSync(scratch, { recursive: true });
  return cases.length;
}

const example = 'docs/examples/training_oom.pickle';
const withoutCommand = (answer) => (answer.text === undefined ? answer : { text: answer.text.replace(/"command":"(?:[^"\\]|\\.)*"/, '"command":""') });

async function compareOthers(inputs) {
  const small = inputs.filter((path) => statSync(path).size < 2 ** 21);
  const files = (...names) => names.map((name) => ({ name, bytes: readFileSync(join(root, name)) }));
  const message = 'docs/examples/oom_message.txt';
  const cases = [
    ['text', ['explain'], [example]], ['markdown', ['explain', '--format', 'markdown'], [example]], ['json', ['explain', '--json'], [example, message]],
    ['text', ['explain'], [message, example]], ['page', ['report', '-o', '-'], [example]], ['page', ['report', '-o', '-'], [example, message]],
    ['sweep-json', ['sweep', '--json'], [example]], ['diff-json', ['diff', '--json'], [example, example]], ['diff', ['diff'], [example, example]],
    ...small.slice(0, 40).map((path) => ['text', ['explain'], [relative(root, path)]]),
    ...small.filter((_, i) => i % 7 === 0).slice(0, 12).map((path) => ['page', ['report', '-o', '-'], [relative(root, path)]]),
  ];
  await inTurn(cases, async ([what, command, names]) => {
    const theirs = await askProgram([...command, ...names]);
    compare(`${command.join(' ')} ${names.join(' ')}`, withoutCommand(await askModule(files(...names), what)), withoutCommand(theirs));
  });
  const capacity = await askProgram(['explain', '--json', '--capacity', '12GiB', example]);
  compare('explain --capacity 12GiB', await askModule(files(example), 'json', { capacity: '12GiB' }), capacity);
  const cut = await askProgram(['explain', '--json', '--max-events', '50', example]);
  compare('explain --max-events 50', await askModule(files(example), 'json', { 'max-events': '50' }), cut);
}

// What compares must be able to fail.
async function proveItFails() {
  const [answer, other] = [await askModule([{ name: 'a', bytes: readFileSync(join(root, example)) }], 'json'), { text: '{}\n' }];
  const say = console.log;
  console.log = () => {};
  compare('proof', answer, other);
  compare('proof', { refusal: 'a: is empty' }, { refusal: 'b: is empty' });
  console.log = say;
  if (failed !== 2) throw new Error('answers that differ are not seen to differ');
  failed = 0;
}

await proveItFails();
const folders = [join(root, 'tests'), join(root, 'docs/examples'), ...['captures', 'corpus', 'reports', 'found', 'golden-real', 'seeded'].map((name) => join(shared, name))];
for (const folder of folders) if (!existsSync(folder)) { ++skipped; console.log(`skipped: there is no ${folder}`); }
const all = named.length > 0 ? named : folders.filter(existsSync).flatMap((folder) => [...filesBelow(folder)]);
const inputs = [];
await inTurn(all, async (path) => { if (await explainBoth(path, relative(root, path))) inputs.push(path); });
inputs.sort();
console.log(`${all.length} files: ${counts.answers} with the same JSON, ${counts.refusals} refused alike, ${skipped} that ask for a library, ${failed} that differ`);
const before = { ...counts };
const damaged = await compareDamaged(inputs);
console.log(`${damaged} cuts and flips of ${inputs.length} inputs: ${counts.answers - before.answers} answered alike, ${counts.refusals - before.refusals} refused alike`);
if (named.length === 0) await compareOthers(inputs);
console.log(`${passed} passed, ${failed} failed, ${skipped} skipped`);
process.exit(failed === 0 && passed > 0 ? 0 : 1);
