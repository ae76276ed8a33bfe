// Made from docs/schemas/estimate.schema.json by python/make_results.py.

export type Estimate = {
  input: string;
  model: Model;
  asked: Asked;
  states: States[];
  rule_of_thumb_bytes: number;
  device: Device;
  no_dry_run: string | null;
  ascending: Run | null;
  descending: Run | null;
  interval: Interval | null;
  shuffles: Shuffles | null;
  levers: Levers | null;
  fit: Fit | null;
  notes: Note[];
};

export type Model = {
  family: string;
  architecture: string | null;
  parameters: number;
  frozen_parameters: number;
  host_parameters: number;
  layers: Layer[];
  tied: Tied[];
  outliers: Outlier[];
};

export type Layer = {
  name: string;
  parameters: number;
  tensors: number;
};

export type Tied = {
  name: string;
  of: string;
};

export type Outlier = {
  name: string;
  shape: number[];
  parameters: number;
  is_embedding: boolean;
  parameters_of_its_rows: number | null;
  column: string | null;
  column_categories: number | null;
  parameters_without_column: number | null;
};

export type Asked = {
  mode: 'training' | 'inference';
  steps: number;
  batch: number;
  tokens: number;
  target_tokens: number;
  lengths: Lengths | null;
  accumulation: number;
  is_checkpointed: boolean;
  is_padded: boolean;
  keeps_outputs: boolean;
  loss: string | null;
  precision: 'fp32' | 'fp16' | 'bf16' | 'fp16-pure' | 'bf16-pure';
  attention: 'eager' | 'sdpa' | 'flash' | null;
  optimizer: string | null;
  torch: string;
  gpu: string;
  conf: string;
  changes: Changes;
};

export type Lengths = {
  text: string;
  batching: 'fixed' | 'dynamic' | 'uniform';
  seed: number;
  samples: number;
  longest: number;
  samples_cut: number;
  epoch_steps: number;
  batch_tokens: number[];
};

export type Changes = {
  vocabulary: number | null;
  layers: number | null;
  width: number | null;
  ties_embeddings: boolean | null;
  shares_embeddings: boolean | null;
  frozen: string[];
  has_host_embeddings: boolean;
};

export type States = {
  optimizer: string | null;
  precision: 'fp32' | 'fp16' | 'bf16' | 'fp16-pure' | 'bf16-pure';
  weights_bytes: number;
  gradients_bytes: number;
  optimizer_bytes: number;
  total_bytes: number;
};

export type Device = {
  name: string | null;
  capacity_bytes: number | null;
  capacity_source: string | null;
  context_bytes: number;
  context_source: string;
};

export type Run = {
  fits: boolean;
  device_bytes: number;
  peak_requested_bytes: number;
  peak_allocated_bytes: number;
  peak_reserved_bytes: number;
  failed_bytes: number | null;
  requests: number;
  moment: Moment;
  parts: Parts;
  phases: Phase[];
};

export type Moment = {
  step: number;
  phase: string;
  parameter: string | null;
  tensor: string | null;
  module: string | null;
  operation: string | null;
  request_bytes: number;
};

export type Parts = {
  weights_bytes: number;
  optimizer_bytes: number;
  gradients_bytes: number;
  saved_activations_bytes: number;
  temporaries_bytes: number;
  batch_bytes: number;
  libraries_bytes: number;
  rounding_and_cache_bytes: number;
  driver_bytes: number;
  context_bytes: number;
};

export type Phase = {
  step: number;
  phase: string;
  weights_bytes: number;
  optimizer_bytes: number;
  gradients_bytes: number;
  saved_activations_bytes: number;
  temporaries_bytes: number;
  batch_bytes: number;
  libraries_bytes: number;
  rounding_and_cache_bytes: number;
  reserved_bytes: number;
};

export type Interval = {
  least_bytes: number;
  most_bytes: number;
  reason: string;
};

export type Shuffles = {
  shuffles: number;
  steps: number;
  epoch_steps: number;
  batchings: ShuffleBatching[];
  rows: ShuffleRow[];
};

export type ShuffleBatching = {
  batching: 'fixed' | 'dynamic' | 'uniform';
  padded_tokens: Quantiles;
  peak_requested_bytes: Quantiles;
};

export type Quantiles = {
  least: number;
  median: number;
  p95: number;
  most: number;
};

export type ShuffleRow = {
  batching: 'fixed' | 'dynamic' | 'uniform';
  conf: string;
  is_asked: boolean;
  memory_fraction: number | null;
  failed: number | null;
  failed_step: Quantiles | null;
  peak_reserved_bytes: Quantiles | null;
};

export type Levers = {
  device_bytes: number;
  fits: boolean | null;
  rows: LeverRow[];
  skipped: LeverSkipped[];
};

export type LeverRow = {
  lever: string;
  flags: string;
  costs: string;
  price: number | null;
  saved_bytes: number;
  device_bytes: number;
  fits: boolean | null;
};

export type LeverSkipped = {
  lever: string;
  why: string;
};

export type Fit = {
  capacity_bytes: number;
  fits: boolean;
  device_bytes: number;
  largest_batch: LargestBatch;
  cheapest: LeverSet | null;
  largest_batch_of_cheapest: LargestBatch | null;
  least: LeverSet | null;
  sets_tried: number;
};

export type LargestBatch = {
  batch: number;
  device_bytes: number;
  tried: number;
  is_bounded: boolean;
  exceptions: number[];
};

export type LeverSet = {
  levers: string[];
  flags: string[];
  price: number;
  device_bytes: number;
};

export type Note = {
  name: string;
  message: string;
  count: number;
};
