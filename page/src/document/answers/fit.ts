// Made from docs/schemas/fit.schema.json by python/make_results.py.

export type Fit = {
  program: string[];
  headline: string;
  card: string;
  total_bytes: number;
  host_memory_bytes: number;
  steps: number;
  stop_step: number | null;
  as_it_is: Row;
  set: Row | null;
  varied: Varied | null;
  cards: Card[];
  with: string[];
  leaves_draws: boolean;
  workspaces: string | null;
  has_worst_first: boolean;
  why_no_worst: string | null;
  own_order_bytes: number | null;
  changes: Change[];
  rows: Row[];
  sets: Row[];
  settings: Setting[];
  estimates: Estimate[];
  held: Held[];
  runs: number;
  untried_changes: number;
  untried_sets: number;
  pruned_sets: number;
  allowed: string[];
  kept_away: string[];
  not_sent: string[];
  remarks: string[];
};

export type Row = {
  changes: string[];
  fits: boolean | null;
  peak_reserved_bytes: number | null;
  device_bytes: number | null;
  failed_step: number | null;
  host_bytes: number;
  is_over_host: boolean;
  diff: Diff | null;
  cache: Cache | null;
  costs: string;
  roofline_seconds: number | null;
  work: Work | null;
  known_by: 'run on the card' | 'run in ample room';
  why_not: string | null;
};

export type Diff = {
  text: string;
  changes: string[];
};

export type Cache = {
  tokens: number;
  longest_request: number;
  most_requests: number;
};

export type Work = {
  operations: number;
  narrow_operations: number;
  memory_bytes: number;
  bus_bytes: number;
};

export type Varied = {
  name: string;
  goal: 'largest' | 'longest' | 'fewest cards';
  found: number | null;
  next: number | null;
  where: string | null;
  is_over: boolean;
  values: Value[];
};

export type Value = {
  value: number;
  run: Row;
};

export type Card = {
  run: Row;
  card: string | null;
  total_bytes: number;
  is_proven: boolean;
};

export type Change = {
  name: string;
  title: string;
  applies: boolean;
  why_not: string | null;
  where: string | null;
  lines: string[];
  costs: string;
  alters: string | null;
  is_allowed: boolean;
};

export type Setting = {
  changes: string[];
  setting: string;
  fits: boolean;
  peak_reserved_bytes: number;
  why_not: string | null;
};

export type Estimate = {
  change: string;
  where: string | null;
  bytes: number;
  lines: string[];
};

export type Held = {
  what: string;
  bytes: number;
};
