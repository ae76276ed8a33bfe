// Made from docs/schemas/explain.schema.json by python/make_results.py.

export type Explanation = {
  source: string;
  headline: string;
  verdict: 'capacity' | 'nearly_full' | 'fragmentation' | 'outside' | 'limit' | 'leak' | 'host_memory' | 'healthy' | 'unknown';
  verdict_certain: boolean;
  evidence: string[];
  moment: string | null;
  accounting: Accounting;
  tried_bytes: number | null;
  request_bytes: number | null;
  request_interval_bytes: [number, number] | null;
  headroom_bytes: number | null;
  headroom_interval_bytes: [number, number] | null;
  peak: Peak;
  stacks: Stack[];
  sizes: Size[];
  held: Held | null;
  labels: Label[];
  pinned_host: PinnedHost | null;
  live_at_end: LiveAtEnd | null;
  by_library: ByLibrary | null;
  message: Message | null;
  raised_at: RaisedAt | null;
  failure: Failure | null;
  pins: Pins;
  program: Program;
  causes: Cause[];
  program_remedies: ProgramRemedy[];
  fidelity: Fidelity | null;
  replayed_as: string | null;
  what_if_capacity_bytes: number | null;
  what_if: WhatIf[];
  paste: string | null;
  advice: string | null;
  own_allocator: OwnAllocator | null;
  run_again: SettingRun | null;
  elsewhere: Elsewhere | null;
  next_step: string | null;
  next_lines: string[];
  actions: Action[];
  notes: Note[];
};

export type Accounting = {
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
};

export type Peak = {
  allocated_bytes: number | null;
  active_bytes: number | null;
  reserved_bytes: number | null;
  utilisation: number | null;
};

export type Stack = {
  bytes: number;
  blocks: number;
  label: string;
};

export type Size = {
  bytes: number;
  blocks: number;
  block_bytes: number;
  stream: number;
};

export type Held = {
  when: string;
  live_bytes: number;
  named_bytes: number;
  bound: string | null;
  not_live_blocks: number;
  holders: Holder[];
};

export type Holder = {
  kind: string;
  name: string;
  file: string | null;
  line: number | null;
  function: string | null;
  nodes: number | null;
  bytes: number;
  blocks: number;
  since_step: number | null;
  steps: number | null;
  bytes_per_step: number | null;
};

export type Label = {
  label: string;
  kind: 'metadata' | 'annotation' | 'internal';
  bytes: number;
  blocks: number;
};

export type PinnedHost = {
  held_bytes: number;
  in_use_bytes: number;
  peak_held_bytes: number | null;
  peak_in_use_bytes: number | null;
  blocks: number;
  events: number;
};

export type LiveAtEnd = {
  bytes: number;
  blocks: number;
  stacks: Stack[];
};

export type ByLibrary = {
  owners: OwnedBytes[];
  in_use_bytes: number | null;
  rest_bytes: number | null;
};

export type OwnedBytes = {
  owner: string;
  file: string | null;
  bytes: number;
  blocks: number;
};

export type Message = {
  family: string;
  device: number | null;
  truncated: boolean;
  told: number;
  figures: MessageFigure[];
};

export type MessageFigure = {
  name: string;
  bytes: number;
  printed: string;
};

export type RaisedAt = {
  line: string;
  code: string | null;
  path: string[];
};

export type Failure = {
  event: number;
  request_bytes: number;
  segment_bytes: number;
  device_free_bytes: number;
  stream: number;
  pool_id: [number, number];
  is_small_pool: boolean;
  is_limited: boolean;
  largest_servable_bytes: number;
  largest_cached_bytes: number;
  free_in_other_streams_bytes: number;
  free_in_other_pools_bytes: number;
  returned_bytes: number;
  returned_segments: number;
  rungs: Rung[];
  release: Release | null;
};

export type Rung = {
  name: string;
  bytes: number;
  would_serve: boolean;
  remark: string | null;
};

export type Release = {
  bytes: number;
  blocks: number;
  lower_bound_bytes: number;
  is_minimal: boolean;
  is_one_run: boolean;
  stacks: Stack[];
};

export type Pins = {
  lines: Pin[];
  other_blame_bytes: number;
  other_blocks: number;
};

export type Pin = {
  label: string;
  blame_bytes: number;
  size_bytes: number;
  blocks: number;
  oldest_event: number | null;
  phase: string | null;
};

export type Program = {
  steps_source: 'none' | 'annotations' | 'period';
  steps_told_from_sizes: boolean;
  regularity: number | null;
  moment: string | null;
  steps: EventRange[];
  phases: Phase[];
  leaks: Leak[];
};

export type EventRange = {
  begin_event: number;
  end_event: number;
};

export type Phase = {
  name: string;
  begin_event: number;
  end_event: number;
};

export type Leak = {
  label: string;
  bytes_per_step: number;
  blocks: number;
  bytes: number;
};

export type Cause = {
  name: string;
  sentence: string;
  finding: 'found' | 'absent' | 'not_in_trace';
  confidence: 'possible' | 'likely' | 'proven' | null;
  bytes: number | null;
  to_come_bytes: number;
  is_footnote: boolean;
  evidence: string[];
  counter_evidence: string[];
  missing: string | null;
  lines: string[];
  held_by: HolderName[];
  fix: Fix | null;
};

export type HolderName = {
  kind: string;
  name: string;
  file: string | null;
  line: number | null;
  function: string | null;
};

export type Fix = {
  change: string;
  is_setting: boolean;
  before: FixRow;
  after: FixRow;
  shows_symptom: boolean;
  removes_symptom: boolean;
};

export type FixRow = {
  peak_reserved_bytes: number;
  ooms: number;
  retries: number;
  driver_calls: number;
};

export type ProgramRemedy = {
  cause: string;
  sentence: string;
  python: string[];
  bytes: number;
  replayed_bytes: number | null;
  is_proven: boolean;
};

export type Fidelity = {
  matched: number;
  total: number;
  segments_matched: number;
  segments_total: number;
  final_state_matches: boolean;
  segment_addresses_used: number;
  tails_inferred: number;
};

export type WhatIf = {
  conf: string;
  is_recorded_setting: boolean;
  peak_reserved_bytes: number;
  peak_allocated_bytes: number;
  ooms: number;
  driver_calls: number;
  estimated_driver_ns: number;
  feasible: boolean | null;
  gets_past: boolean | null;
  projected: Projected | null;
};

export type Projected = {
  requests: number;
  steps: number;
  peak_reserved_bytes: number;
  retries: number;
  ooms: number;
  failed_after: number;
  failed_steps_later: number;
  needed_bytes: number;
  available_bytes: number;
  growth_bytes_per_step: number;
  is_extrapolated: boolean;
};

export type OwnAllocator = {
  what_if: WhatIf;
  sentence: string | null;
  run: string | null;
};

export type SettingRun = {
  conf: string;
  ends: boolean;
  peak_reserved_bytes: number;
};

export type Elsewhere = {
  card: string | null;
  total_bytes: number;
  allocator_bytes: number;
  fits: boolean | null;
  conf: string | null;
  peak_bytes: number | null;
  sentence: string;
};

export type Action = {
  proof: 'run' | 'replayed' | 'estimated' | 'not proven';
  what: string | null;
  lines: string[];
  gain: string | null;
};

export type Note = {
  name: string;
  message: string;
  count: number;
};
