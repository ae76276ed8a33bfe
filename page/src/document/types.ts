// The document that `ashlar report` writes into the page: its index, as JSON. Bytes are bytes, moments are places in a
// run at which its state is known (moment 0 stands before the first event). docs/internals/page.md says more.

import type { Fleet } from './fleet';

export interface Accounting {
  total_bytes: number | null;
  allocated_bytes: number | null;
  reserved_bytes: number | null;
  live_bytes: number | null;
  rounding_bytes: number | null;
  pending_bytes: number | null;
  stranded_bytes: number | null;
  whole_free_bytes: number | null;
  private_pool_bytes: number | null;
  outside_bytes: number | null;
  free_bytes: number | null;
}

export interface Projected {
  requests: number;
  steps: number;
  peak_reserved_bytes: number;
  ooms: number;
  failed_after: number;
  failed_steps_later: number;
  needed_bytes: number;
  growth_bytes_per_step: number;
}

export interface WhatIf {
  conf: string;
  is_recorded_setting: boolean;
  peak_reserved_bytes: number;
  peak_allocated_bytes: number;
  ooms: number;
  driver_calls: number;
  feasible: boolean | null;
  gets_past: boolean | null;
  projected: Projected | null;
}

export interface Fix {
  change: string;
  before: { peak_reserved_bytes: number; ooms: number; retries: number };
  after: { peak_reserved_bytes: number; ooms: number; retries: number };
  removes_symptom: boolean;
}

export interface Cause {
  name: string;
  sentence: string;
  finding: 'found' | 'absent' | 'not_in_trace';
  confidence: 'possible' | 'likely' | 'proven' | null;
  bytes: number | null;
  is_footnote: boolean;
  evidence: string[];
  counter_evidence: string[];
  lines: string[];
  fix: Fix | null;
}

export interface Pin {
  label: string;
  blame_bytes: number;
  size_bytes: number;
  blocks: number;
  oldest_event: number | null;
  phase: string | null;
}

export interface Explanation {
  source: string;
  headline: string;
  verdict: string;
  evidence: string[];
  moment: string | null;
  accounting: Accounting;
  request_bytes: number | null;
  peak: { allocated_bytes: number | null; active_bytes: number | null; reserved_bytes: number | null; utilisation: number | null };
  stacks: { bytes: number; blocks: number; label: string }[];
  pinned_host: {
    held_bytes: number;
    in_use_bytes: number;
    peak_held_bytes: number | null;
    peak_in_use_bytes: number | null;
    blocks: number;
    events: number;
  } | null;
  live_at_end?: object | null; // of a trace of calls
  failure: {
    event: number;
    request_bytes: number;
    segment_bytes: number;
    rungs: { name: string; bytes: number; would_serve: boolean; remark: string | null }[];
  } | null;
  pins: { lines: Pin[]; other_blame_bytes: number; other_blocks: number };
  causes: Cause[];
  program_remedies: { cause: string; sentence: string; python: string[]; bytes: number }[];
  what_if: WhatIf[];
  what_if_capacity_bytes: number | null;
  paste: string | null;
  advice: string | null;
  own_allocator: { what_if: WhatIf; sentence: string | null; run: string | null } | null;
  next_step: string | null;
  next_lines: string[];
  notes: { name: string; message: string; count: number }[];
}

export interface Stacks {
  labels: string[];
  frames: [string, number | null, string][];
  starts: number[];
  stack_frames: number[]; // stack i: stack_frames[starts[i] .. starts[i + 1]), innermost first
}

export interface CauseMark {
  name: string;
  moment: number;
  blocks: number[];
  stacks: number[];
}

export interface Input {
  name: string;
  rank: number | null;
  device: number | null;
  explanation: Explanation;
  explanation_text: string;
  runs: number[]; // the observed one first; empty for a message
  stacks: Stacks;
  texts: string[];
  causes: CauseMark[];
  evidence_moments: { event: number; moment: number }[];
}

export type ColumnType = 'u8' | 'i8' | 'u16' | 'i16' | 'u32' | 'i32' | 'f64';

export interface Column {
  blob: number;
  type: ColumnType;
  offset: number; // in bytes, of the unpacked blob
  count: number;
  base: number;
  scale: number;
  delta: boolean;
}

export interface Phase {
  name: string;
  begin: number;
  end: number;
}

export interface Run {
  kind: 'observed' | 'what_if' | 'host';
  input: number;
  name: string;
  what_if_row: number | null;
  event_count: number;
  moment_count: number;
  is_thinned: boolean;
  capacity_bytes: number | null;
  has_time: boolean;
  start_time_us: number | null;
  verdict_moment: number;
  peaks: Record<'allocated' | 'active' | 'reserved', { moment: number; bytes: number }>;
  failures: number[];
  projected_from: number | null;
  steps: [number, number][];
  phases: Phase[];
  streams: string[];
  pools: string[];
  columns: Record<string, Column>;
}

// Parts of estimate.schema.json, diff.schema.json and dry-run.schema.json that the page shows.
export type Parts = Record<string, number | null>;

export interface DiffRow {
  label: string;
  found_in: 'both' | 'a' | 'b';
  a: Parts;
  b: Parts;
  difference: Parts;
}

export interface Diff {
  a: { input: string; source: string; moment: string; parts: Parts };
  b: { input: string; source: string; moment: string; parts: Parts };
  difference: Parts;
  by_stack: DiffRow[] | null;
  by_phase: DiffRow[] | null;
  by_size: DiffRow[];
  by_segment: DiffRow[];
  notes: { message: string }[];
}

export interface EstimatePhase extends Record<string, number | string> {
  step: number;
  phase: string;
  reserved_bytes: number;
}

export interface EstimateSide {
  fits: boolean;
  device_bytes: number;
  peak_reserved_bytes: number;
  parts: Record<string, number>;
  phases: EstimatePhase[];
}

export interface Estimate {
  input: string;
  model: { architecture: string | null; family: string; parameters: number };
  device: { name: string | null; capacity_bytes: number | null };
  ascending: EstimateSide | null;
  descending: EstimateSide | null;
  interval: { least_bytes: number; most_bytes: number; reason: string } | null;
  notes: { message: string }[];
}

export interface Outcome {
  conf: string;
  fits: boolean | null; // null: no verdict
  headroom_bytes: number | null;
  retries: number;
  failed_step: number | null;
  failed_at: string | null;
}

export interface Card {
  card: string;
  ran_as: string; // whose kernels the requests are of
  has_verdict: boolean;
  has_kernels: boolean | null; // false: it would fit, and not run
  total_bytes: number;
  allocator_bytes: number;
  peak_allocated_bytes: number;
  default: Outcome;
  expandable: Outcome | null;
  best_found: Outcome | null;
}

export interface DryRun {
  program: string[];
  exit_code: number;
  fits: boolean | null;
  ended_early: { by: string; what: string } | null;
  peak_bytes: number;
  machine: { card: string | null; devices: number; has_limit: boolean; total: { bytes: number }; context: { bytes: number } };
  processes: { pid: number; rank: number | null; out_of_memory: number }[];
  cards: { peak_allocated_bytes: number; outside_bytes: number; rows: Card[] } | null;
  assumptions: { what: string; bytes: number | null; mark: string; source: string }[];
}

export interface PageDocument {
  format: 'ashlar-page';
  version: number;
  made_by: string;
  title: string;
  command: string;
  inputs: Input[];
  runs: Run[];
  diff: Diff | null;
  estimate: Estimate | null;
  dry_run: DryRun | null;
  fleet: Fleet | null;
}
