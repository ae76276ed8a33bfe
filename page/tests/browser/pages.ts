// The pages that the tests open, and where they lie.
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const kRoot = join(dirname(fileURLToPath(import.meta.url)), '../../..');
export const kPages = join(kRoot, 'build/page');

// A phone, a tablet, a laptop, a large screen.
export const kWidths = [360, 768, 1440, 2560];

const shared = process.env.ASHLAR_SHARED_DIR ?? join(kRoot, '../shared');
const example = join(kRoot, 'docs/examples/training_oom.pickle');
const answer = (name: string): string => join(kRoot, 'docs/examples/answers', name);
const capture = (name: string): string => join(shared, 'captures', `${name}.pickle.gz`);
const corpus = (name: string): string => join(shared, 'corpus', `${name}.pickle.gz`);

// Recorded runs. Those of the shared folder are left out where it is missing.
export const kRecorded: { name: string; files: string[]; flags: string[] }[] = [
  { name: 'fragmented', files: [example], flags: ['--capacity', '12GiB'] },
  { name: 'message', files: [join(kRoot, 'docs/examples/oom_message.txt')], flags: [] },
  { name: 'outside', files: [answer('outside.txt')], flags: [] },
  { name: 'leak', files: [answer('leak.pickle.xz')], flags: [] },
  { name: 'optimizer_state', files: [answer('capacity.pickle.xz')], flags: [] },
  { name: 'healthy', files: [capture('torch-2.14.1_default')], flags: [] },
  { name: 'capacity', files: [capture('torch-2.14.1_default')], flags: ['--capacity', '80GiB'] },
  { name: 'failed', files: [capture('torch-2.14.1_default_oom')], flags: [] },
  { name: 'streams', files: [capture('torch-2.14.1_streams')], flags: [] },
  { name: 'private_pools', files: [capture('torch-2.14.1_pool')], flags: [] },
  { name: 'expandable', files: [capture('torch-2.14.1_streams_exp')], flags: [] },
  { name: 'no_stacks', files: [corpus('Charran78__DocuBox__dump_snapshot.5741975d')], flags: [] },
  { name: 'torch_2_0', files: [corpus('Yiyi-philosophy__LLM-inference__oom_snapshot.fc31f1ea')], flags: [] },
  { name: 'state_alone', files: [corpus('volcengine__verl__mem.001e30bf')], flags: [] },
  ...(process.env.ASHLAR_PAGE_FILES ?? '').split(':').filter((file) => file !== '') // more, to be looked at with all tests
    .map((file, i) => ({ name: `more_${i}`, files: [file], flags: [] })),
  { name: 'two', files: [example, capture('torch-2.14.1_default')], flags: [] },
];

// The program, where it is built.
export function programPath(): string | null {
  const path = process.env.ASHLAR ?? join(kRoot, 'build/release/bin/ashlar');
  return existsSync(path) ? path : null;
}

export const pagePath = (name: string): string => join(kPages, `${name}.html`);
export const hasPage = (name: string): boolean => existsSync(pagePath(name));
export const recorded = kRecorded.map(({ name }) => name);
