// Made from docs/schemas/dry-run.schema.json by python/make_results.py.
import type { Explanation } from './explain';

export type DryRun = {
  program: string[];
  exit_code: number;
  fits: boolean | null;
  fits_unless: Condition | null;
  ended_early: Ended | null;
  peak_bytes: number;
  machine: Machine;
  ranks: Ranks | null;
  processes: Process[];
  cards: Cards | null;
  made_up: MadeUp;
  given_values: GivenValue[];
  value_reads: ReadingLine[];
  account: Account | null;
  cudnn_workspaces: CudnnWorkspaces | null;
  assumptions: Assumption[];
  not_supported: Call[];
  explained_pid: number | null;
  explanation: Explanation | null;
  notes: string[];
};

export type Condition = {
  who: string;
  bytes: number;
};

export type Ended = {
  by: 'exit_code' | 'signal' | 'exception' | 'process';
  what: string;
};

export type Machine = {
  card: string | null;
  devices: number;
  has_limit: boolean;
  total: Value;
  context: Value;
};

export type Value = {
  bytes: number;
  mark: 'measured' | 'published' | 'assumed' | 'given';
  source: string;
};

export type Ranks = {
  ranks: number;
  ranks_per_node: number;
  decides: number | null;
  why_no_roles: string | null;
  roles: Role[];
  compared: string[];
  assumed: string[];
};

export type Role = {
  rank: number;
  what: string;
  stands_for: number[];
  fits: boolean | null;
  peak_bytes: number;
  peak_allocated_bytes: number;
  beside_least_bytes: number;
  beside_most_bytes: number;
  communicators: number;
  why_not: string | null;
};

export type Process = {
  pid: number;
  rank: number | null;
  out_of_memory: number;
  died: boolean;
  books: Books | null;
  torch: Torch | null;
  jax: Jax | null;
  vllm: Vllm | null;
  sglang: Sglang | null;
};

export type Books = {
  devices: Device[];
  pinned_peak_bytes: number;
  launches: number;
  found_done: number;
};

export type Device = {
  ordinal: number;
  total_bytes: number;
  context_bytes: number;
  peak_bytes: number;
  used_at_end_bytes: number;
  out_of_memory: number;
  libraries: Library[];
};

export type Library = {
  name: string | null;
  bytes: number;
};

export type Torch = {
  version: string;
  exception: string | null;
  not_kept: string | null;
  devices: TorchDevice[];
};

export type TorchDevice = {
  index: number;
  peak_allocated_bytes: number;
  peak_reserved_bytes: number;
  ooms: number;
  retries: number;
};

export type Jax = {
  devices: JaxDevice[];
  out_of_memory: string | null;
};

export type JaxDevice = {
  index: number;
  peak_in_use_bytes: number;
  reserved_bytes: number;
  limit_bytes: number;
};

export type Vllm = {
  weights_bytes: number;
  activations_bytes: number;
  graphs_bytes: number;
  kv_cache_bytes: number;
  requested_bytes: number;
  tokens: number;
  longest_request: number;
  most_requests: number;
};

export type Sglang = {
  weights_bytes: number;
  kv_cache_bytes: number;
  requested_bytes: number;
  tokens: number;
};

export type Cards = {
  is_replayed: boolean;
  outside_bytes: number;
  peak_allocated_bytes: number;
  replays: number;
  runs: CardRun[];
  why_no_runs: string | null;
  kept_away: string[];
  not_sent: string[];
  rows: Card[];
};

export type CardRun = {
  card: string;
  capability: string;
  why_not: string | null;
};

export type Card = {
  card: string;
  capability: string;
  ran_as: string;
  has_verdict: boolean;
  has_kernels: boolean | null;
  total_bytes: number;
  allocator_bytes: number;
  peak_allocated_bytes: number;
  default: Outcome;
  expandable: Outcome | null;
  best_found: Outcome | null;
};

export type Outcome = {
  conf: string;
  fits: boolean | null;
  headroom_bytes: number | null;
  retries: number;
  failed_step: number | null;
  failed_at: string | null;
};

export type MadeUp = {
  total: number;
  lines: MadeUpLine[];
};

export type MadeUpLine = {
  line: string;
  count: number;
  bytes: number;
};

export type GivenValue = {
  flag: string;
  reads: number;
  why_not: string | null;
};

export type ReadingLine = {
  line: string;
  count: number;
};

export type Account = {
  device: number;
  peak_bytes: number;
  beside_least_bytes: number;
  beside_most_bytes: number;
  parts: AccountPart[];
};

export type AccountPart = {
  name: string;
  least_bytes: number;
  most_bytes: number;
  in_peak: boolean;
  mark: 'measured' | 'computed' | 'published' | 'assumed' | 'given';
  source: string;
};

export type CudnnWorkspaces = {
  plans: number;
  answered: number;
  largest_bytes: number;
  version: number;
  why_not: string | null;
};

export type Assumption = {
  what: string;
  bytes: number | null;
  mark: 'measured' | 'published' | 'assumed' | 'given';
  source: string;
};

export type Call = {
  name: string;
  count: number;
};
