// The document that `ashlar report` writes into the page: its index, as JSON. Bytes are bytes, moments are places in a
// run at which its state is known (moment 0 stands before the first event). docs/internals/page.md says more. What
// commands answer is typed by their schemas, in answers.

import type { Diff } from './answers/diff';
import type { DryRun } from './answers/dry-run';
import type { Estimate } from './answers/estimate';
import type { Explanation } from './answers/explain';
import type { Fit } from './answers/fit';
import type { Fleet } from './answers/fleet';

export interface Stacks {
  labels: string[];
  parts: (string | null)[]; // what stack i is called where its line holds more than half; null: as the line
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
  holders: string[]; // by name in the program; empty: the file has no names
  settings: [string, string][]; // as recorded
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
  left_out: { blocks: number; share: number }; // blocks that a limit left out, and their share of all bytes x time
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
  fit: Fit | null;
}
