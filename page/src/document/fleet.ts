// What the page shows of fleet.schema.json. A member is a place in `ranks`.
export interface FleetRank {
  rank: number;
  name: string;
  file: string;
  error: string | null;
  headline: string | null;
  events: number | null;
  steps: number | null;
  failure: { time_us: number | null; request_bytes: number | null; verdict: string } | null;
  peak_allocated_bytes: number | null;
  peak_reserved_bytes: number | null;
  stranded_bytes: number | null;
  total_bytes: number | null;
  conf: string | null;
  causes: { name: string; confidence: string; bytes: number; line: string | null }[];
  growth: { bytes_per_step: number; bytes: number; line: string | null } | null;
}

export interface Fleet {
  answer: string[];
  paste: string | null;
  failures: { member: number; after_us: number | null }[];
  stages: { members: number[]; median_peak_allocated_bytes: number; median_peak_reserved_bytes: number }[];
  outliers: { member: number; figure: string; bytes: number; median_bytes: number }[];
  causes: { name: string; sentence: string; members: number[]; failed: number[]; median_bytes: number; most_bytes: number; line: string | null }[];
  growths: { members: number[]; least_bytes_per_step: number; most_bytes_per_step: number; line: string | null }[];
  settings?: { conf: string; compat: string; total_bytes: number | null; members: number[] }[];
  tried: {
    advice: string;
    replays?: number;
    rows?: {
      conf: string | null; is_recorded_setting: boolean; is_recommended: boolean; failing_members: number; worst_regret: number;
      driver_calls: number; peak_reserved_bytes: number[];
    }[];
  } | null;
  broken: number[];
  ranks: FleetRank[];
  heat: {
    clock: 'common' | 'own' | 'events';
    begin_us: number | null;
    end_us: number | null;
    full_bytes: number;
    bins: number;
    rows: { member: number; allocated: string; reserved: string }[]; // thousandths of full_bytes, "-" outside the window
  };
  notes: string[];
}

// "0 12 - 900": -1 where the rank has no value.
export function sharesOf(text: string): Int16Array {
  return Int16Array.from(text.split(' ').filter((word) => word !== ''), (word) => (word === '-' ? -1 : Number(word)));
}
