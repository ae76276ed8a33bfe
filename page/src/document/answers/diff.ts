// Made from docs/schemas/diff.schema.json by python/make_results.py.

export type Diff = {
  a: Side;
  b: Side;
  difference: SegmentDifference;
  by_name: NameRow[] | null;
  by_stack: BlockRow[] | null;
  by_phase: BlockRow[] | null;
  by_size: BlockRow[];
  by_segment: SegmentRow[];
  notes: Note[];
};

export type Side = {
  input: string;
  source: string;
  moment: string;
  names: Names | null;
  parts: SegmentParts;
};

export type Names = {
  when: string;
  live_bytes: number;
  named_bytes: number;
  bound: string | null;
};

export type SegmentParts = {
  reserved_bytes: number;
  stranded_bytes: number;
  whole_free_bytes: number;
  private_pool_bytes: number;
  segments: number;
  in_use_bytes: number;
  allocated_bytes: number;
  live_bytes: number | null;
  rounding_bytes: number | null;
  pending_bytes: number;
  blocks: number;
};

export type SegmentDifference = {
  reserved_bytes: number;
  stranded_bytes: number;
  whole_free_bytes: number;
  private_pool_bytes: number;
  segments: number;
  in_use_bytes: number;
  allocated_bytes: number;
  live_bytes: number | null;
  rounding_bytes: number | null;
  pending_bytes: number;
  blocks: number;
};

export type NameRow = {
  kind: string;
  name: string;
  file: string | null;
  line: number | null;
  function: string | null;
  found_in: 'both' | 'a' | 'b';
  a: NamedParts;
  b: NamedParts;
  difference: NamedDifference;
};

export type NamedParts = {
  bytes: number;
  blocks: number;
};

export type NamedDifference = {
  bytes: number;
  blocks: number;
};

export type BlockRow = {
  label: string;
  found_in: 'both' | 'a' | 'b';
  a: BlockParts;
  b: BlockParts;
  difference: BlockDifference;
};

export type BlockParts = {
  in_use_bytes: number;
  allocated_bytes: number;
  live_bytes: number | null;
  rounding_bytes: number | null;
  pending_bytes: number;
  blocks: number;
};

export type BlockDifference = {
  in_use_bytes: number;
  allocated_bytes: number;
  live_bytes: number | null;
  rounding_bytes: number | null;
  pending_bytes: number;
  blocks: number;
};

export type SegmentRow = {
  label: string;
  found_in: 'both' | 'a' | 'b';
  a: SegmentParts;
  b: SegmentParts;
  difference: SegmentDifference;
};

export type Note = {
  name: string;
  message: string;
  count: number;
};
