// Parts of a document that no recorded file has: a fleet of ranks with a failing, a growing and a broken one, a dry run
// with cards, and a program that fits with two changes.
import type { Fleet, Rank } from '../src/document/answers/fleet';
import type { Change, Fit, Row } from '../src/document/answers/fit';
import type { DryRun, Outcome } from '../src/document/answers/dry-run';
import { wholeOf } from './part';

const kGiB = 2 ** 30;

export function makeFleet(count: number, bins = 200): Fleet {
  const ranks = Array.from({ length: count }, (_, rank) => wholeOf<Rank>({
    rank, name: `rank ${rank}`, file: `run/rank${rank}.pickle`, error: rank === 5 ? 'the file ends in the middle of a list' : null,
    headline: rank === 5 ? null : rank === 3 ? 'OUT OF MEMORY  device 0' : 'NO FAILURE  device 0', events: 1000 + rank, steps: 4,
    failure: rank === 3 ? { time_us: 4e6, request_bytes: kGiB, verdict: 'leak' } : null,
    peak_allocated_bytes: rank === 5 ? null : (8 + (rank % 3)) * kGiB, peak_reserved_bytes: rank === 5 ? null : (10 + (rank % 3)) * kGiB,
    stranded_bytes: rank === 5 ? null : rank * 2 ** 20, total_bytes: 16 * kGiB, conf: '',
    causes: rank === 3 ? [{ name: 'outputs_kept', confidence: 'proven', bytes: kGiB, line: 'train.py:9 step' }] : [],
    growth: rank === 3 ? { bytes_per_step: 2 ** 28, bytes: kGiB, line: 'train.py:9 step' } : null }));
  const shares = (rank: number, top: number): string => Array.from({ length: bins }, (_, i) => {
    if (rank === 3 && i > bins * 0.7) return '-';
    return String(Math.min(1000, Math.round(top * (0.5 + 0.4 * Math.sin(i / 9 + rank / 5)) + (rank === 3 ? 3 * i : 0))));
  }).join(' ');
  return wholeOf<Fleet>({
    answer: ['rank 3 failed first: out of memory after 4.000 s', 'rank 5 is broken: its file ends in the middle of a list'],
    paste: 'export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True', failures: [{ member: 3, after_us: 4e6 }],
    stages: [0, 1].map((half) => ({
      members: ranks.map((row) => row.rank).filter((rank) => rank !== 5 && Math.floor((2 * rank) / count) === half),
      median_peak_allocated_bytes: 9 * kGiB, median_peak_reserved_bytes: 11 * kGiB })),
    settings: [{ conf: '', compat: 'torch-2.12', total_bytes: null, members: [0, 1, 2] }, { conf: 'expandable_segments:True', compat: 'torch-2.12', total_bytes: 16 * kGiB, members: [3, 4] }],
    outliers: [{ member: 3, figure: 'peak_reserved', bytes: 15 * kGiB, median_bytes: 11 * kGiB }],
    causes: [{ name: 'outputs_kept', sentence: 'Outputs pile up', members: [3], failed: [3], median_bytes: kGiB, most_bytes: kGiB, line: 'train.py:9 step' }],
    growths: [], tried: {
      advice: 'expandable_segments:True serves all ranks best', replays: 96, rows: [
        { conf: null, is_recorded_setting: true, is_recommended: false, failing_members: 1, worst_regret: 0.12, driver_calls: 900, peak_reserved_bytes: [12 * kGiB] },
        { conf: 'expandable_segments:True', is_recorded_setting: false, is_recommended: true, failing_members: 0, worst_regret: 0, driver_calls: 700, peak_reserved_bytes: [11 * kGiB] }] }, broken: [5], ranks,
    heat: {
      clock: 'common', begin_us: 0, end_us: 6e6, full_bytes: 16 * kGiB, bins,
      rows: ranks.filter((row) => row.error === null).map((row) => ({ member: row.rank, allocated: shares(row.rank, 600), reserved: shares(row.rank, 800) })) },
    notes: ['ranks are told from the names of files'] });
}

export function makeDryRun(): DryRun {
  const outcome = (headroom: number | null, conf = ''): Outcome => ({
    conf, fits: headroom !== null, headroom_bytes: headroom, retries: 0, failed_step: headroom === null ? 1 : null,
    failed_at: headroom === null ? 'step 1, backward' : null });
  return wholeOf<DryRun>({
    program: ['python', 'train.py'], exit_code: 0, fits: true, ended_early: null, peak_bytes: 21 * kGiB,
    machine: { card: null, devices: 1, has_limit: false, total: { bytes: 2 ** 40 }, context: { bytes: 2 ** 29 } },
    processes: [{ pid: 1, rank: null, out_of_memory: 0 }],
    cards: {
      peak_allocated_bytes: 20 * kGiB, outside_bytes: 2 ** 29, rows: [
        { card: 'V100-16GB', ran_as: 'A100-80GB', has_verdict: false, has_kernels: null, total_bytes: 16 * kGiB, allocator_bytes: 15 * kGiB, peak_allocated_bytes: 20 * kGiB, default: { ...outcome(null), fits: null }, expandable: null, best_found: null },
        { card: 'A10-24GB', ran_as: 'A10-24GB', has_verdict: true, has_kernels: null, total_bytes: 24 * kGiB, allocator_bytes: 23 * kGiB, peak_allocated_bytes: 20 * kGiB, default: outcome(null), expandable: outcome(kGiB, 'expandable_segments:True'), best_found: outcome(kGiB, 'expandable_segments:True') },
        { card: 'A100-80GB', ran_as: 'A100-80GB', has_verdict: true, has_kernels: null, total_bytes: 80 * kGiB, allocator_bytes: 79 * kGiB, peak_allocated_bytes: 20 * kGiB, default: outcome(57 * kGiB), expandable: outcome(58 * kGiB), best_found: outcome(58 * kGiB) }] },
    fits_unless: { who: 'NCCL', bytes: kGiB },
    account: { device: 0, peak_bytes: 21 * kGiB, beside_least_bytes: 0, beside_most_bytes: 2 * kGiB, parts: [
      { name: "PyTorch's allocator", least_bytes: 20 * kGiB, most_bytes: 20 * kGiB, in_peak: true, mark: 'measured', source: 'as it asked the device' },
      { name: 'NCCL', least_bytes: 0, most_bytes: 2 * kGiB, in_peak: false, mark: 'computed', source: 'its rules' }] },
    assumptions: [{ what: 'context', bytes: 2 ** 29, mark: 'assumed', source: 'a table' }] });
}

// A program that fails as it is, and fits with two changes.
export function makeFit(): Fit {
  const row = (changes: string[], peak: number, fits: boolean | null): Row => ({
    changes, fits, peak_reserved_bytes: peak, device_bytes: peak + 2 ** 28, failed_step: fits === false ? 2 : null, costs: 'none',
    host_bytes: 0, is_over_host: false, diff: null, roofline_seconds: null, work: null, cache: null, known_by: 'run in ample room', why_not: fits === null ? 'it ended with exit code 1' : null });
  const change = (name: string): Change => ({
    name, title: `the change ${name}`, applies: true, why_not: null, where: 'train.py:7', lines: [`write(${name})`], costs: 'none',
    alters: null, is_allowed: true });
  return {
    leaves_draws: false,
    workspaces: null, program: ['python', 'train.py'], headline: 'fails at step 2 as it is; fits with half, blocks', card: 'T4', total_bytes: 2 ** 34,
    host_memory_bytes: 2 ** 36, steps: 8,
    stop_step: 4, as_it_is: row([], 2 ** 35, false), set: { ...row(['half', 'blocks'], 2 ** 33, true), diff: { text: '--- train.py\n+++ train.py\n', changes: ['half'] } }, varied: null, cards: [], with: [],
    has_worst_first: false, why_no_worst: null, own_order_bytes: null, changes: [change('half'), change('blocks')],
    rows: [row(['half'], 3 * 2 ** 33, false), row(['blocks'], 2 ** 34, null)], sets: [row(['half', 'blocks'], 2 ** 33, true)],
    settings: [{ changes: ['half', 'blocks'], setting: 'expandable_segments:True', fits: true, peak_reserved_bytes: 2 ** 33, why_not: null }], held: [],
    estimates: [{ change: 'let PyTorch compute attention without keeping its scores', where: 'train.py:68 forward', bytes: 2 ** 31, lines: ['x = F.scaled_dot_product_attention(query, key, value)'] }],
    runs: 6, untried_changes: 0, untried_sets: 0, pruned_sets: 0, allowed: [], kept_away: [], not_sent: [], remarks: ['rows end after step 4 of 8'] };
}
