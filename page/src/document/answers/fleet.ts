// Made from docs/schemas/fleet.schema.json by python/make_results.py.

export type Fleet = {
  answer: string[];
  paste: string | null;
  ranks_assumed: string;
  failures_in_order: boolean;
  failures: Failure[];
  stages: Stage[];
  outliers: Outlier[];
  causes: Cause[];
  growths: Growth[];
  settings: Settings[];
  tried: Tried | null;
  broken: number[];
  ranks: Rank[];
  heat: Heat;
  notes: string[];
};

export type Failure = {
  member: number;
  after_us: number | null;
};

export type Stage = {
  members: number[];
  median_peak_allocated_bytes: number;
  median_peak_reserved_bytes: number;
};

export type Outlier = {
  member: number;
  figure: 'peak_allocated' | 'peak_reserved' | 'stranded';
  bytes: number;
  median_bytes: number;
  spread_bytes: number;
  stage: number | null;
};

export type Cause = {
  name: string;
  sentence: string;
  members: number[];
  first_of: number[];
  failed: number[];
  median_bytes: number;
  most_bytes: number;
  line: string | null;
  line_members: number;
};

export type Growth = {
  members: number[];
  least_bytes_per_step: number;
  most_bytes_per_step: number;
  line: string | null;
};

export type Settings = {
  conf: string;
  compat: string;
  total_bytes: number | null;
  members: number[];
};

export type Tried = {
  members: number[];
  advice: string;
  paste: string | null;
  replays: number;
  rows: Row[];
};

export type Row = {
  conf: string | null;
  is_recorded_setting: boolean;
  is_recommended: boolean;
  failing_members: number;
  ooms: number;
  worst_regret: number;
  driver_calls: number;
  estimated_driver_ns: number;
  retries: number;
  risk: 'none' | 'note' | 'caution' | 'not_recommended';
  peak_reserved_bytes: number[];
  risks: Risk[];
};

export type Risk = {
  name: string;
  sentence: string;
  source: string;
};

export type Rank = {
  rank: number;
  name: string;
  file: string;
  file_bytes: number;
  error: string | null;
  source: string | null;
  headline: string | null;
  device: number | null;
  events: number | null;
  steps: number | null;
  failure: RankFailure | null;
  peak_allocated_bytes: number | null;
  peak_reserved_bytes: number | null;
  stranded_bytes: number | null;
  total_bytes: number | null;
  compat: string | null;
  conf: string | null;
  causes: RankCause[];
  growth: RankGrowth | null;
  addresses_matched: number | null;
  addresses_total: number | null;
};

export type RankFailure = {
  time_us: number | null;
  request_bytes: number | null;
  verdict: string;
};

export type RankCause = {
  name: string;
  confidence: string;
  bytes: number;
  needs_a_change: boolean;
  line: string | null;
};

export type RankGrowth = {
  bytes_per_step: number;
  bytes: number;
  line: string | null;
};

export type Heat = {
  clock: 'common' | 'own' | 'events';
  begin_us: number | null;
  end_us: number | null;
  full_bytes: number;
  bins: number;
  rows: HeatRow[];
};

export type HeatRow = {
  member: number;
  allocated: string;
  reserved: string;
};
