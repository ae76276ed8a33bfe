"""What `ashlar sweep` answers. Sizes are bytes; None: not known.

Settings side by side, best first. Sizes are bytes; null means that it is not known.

Made from docs/schemas/sweep.schema.json by python/make_results.py.
"""

import dataclasses
from typing import Literal, Optional, Tuple

from ashlar_gpu._answer import Answer


@dataclasses.dataclass(frozen=True)
class Fidelity:
    matched: int  # Allocations that landed at the recorded address, and recorded failures that failed again.
    total: int  # Recorded allocations, failed ones included.
    is_exact: bool  # All addresses, all segments and the final state are as recorded.


@dataclasses.dataclass(frozen=True)
class Trace:
    name: str  # The file as given; - is standard input.
    source: str  # What was read: kind, generation, device, number of events.
    requests: int  # Number of requests in one replay.
    recorded_conf: str  # Settings of the recorded run, as for PYTORCH_CUDA_ALLOC_CONF; empty: the defaults.
    compat: str  # Version whose rules were replayed.
    capacity_bytes: Optional[int]  # Bytes the allocator could have; null: not known, never runs out.
    # Greatest sum of segments in the record's own window, bytes; null for a request trace.
    recorded_peak_reserved_bytes: Optional[int]
    fidelity: Optional[Fidelity]  # How exactly the recorded settings reproduce the record; null for a request trace.


@dataclasses.dataclass(frozen=True)
class Risk:
    name: str  # Stable key, see ashlar guide sweep.
    # A note does not count in the ranking; what is not recommended is never advised.
    level: Literal["none", "note", "caution", "not_recommended"]
    sentence: str  # What goes wrong.
    source: str  # Where that is from.


@dataclasses.dataclass(frozen=True)
class Projected:
    requests: int  # Projected requests that were replayed; the replay ends at the first that fails.
    steps: int  # Steps that they span, the cut-off one among them.
    peak_reserved_bytes: int  # Greatest sum of segments, recorded and projected, bytes.
    retries: int  # Projected requests for which the cache went back to the device.
    ooms: int  # 1 where a projected request fails, or one after them by the growth a step; else 0.
    failed_after: int  # Requests after the one that ended the recorded run; 1: the next; 0: none fails.
    failed_steps_later: int  # Whole steps after it; 0: in the step that was cut off, or none fails.
    needed_bytes: int  # What is allocated then, and the request, bytes; 0: none fails.
    available_bytes: int  # What the allocator can have, bytes.
    growth_bytes_per_step: int  # By which a step leaves more behind than it found, bytes.
    is_extrapolated: bool  # Whether the failure lies beyond what was replayed, and is told by that growth.


@dataclasses.dataclass(frozen=True)
class TraceRow:
    peak_reserved_bytes: int  # Greatest sum of segments, bytes.
    peak_allocated_bytes: int  # Greatest sum of live blocks, bytes.
    ooms: int  # Number of failed requests.
    retries: int  # Number of requests for which the cache went back to the device.
    driver_calls: int  # Number of calls that obtain or return memory.
    estimated_driver_ns: int  # Nanoseconds of those calls by the simulated device's cost model.
    feasible: Optional[bool]  # No request failed; null where the capacity is not known.
    # The request that ended the recorded run is served; null where none ended it, or the capacity is not known.
    gets_past: Optional[bool]
    # What would have come after that request, told from the step before; null where it is not served, or nothing is
    # known.
    projected: Optional[Projected]


@dataclasses.dataclass(frozen=True)
class Row:
    # As for PYTORCH_CUDA_ALLOC_CONF; empty: the defaults; null: each trace under recorded settings of its own.
    conf: Optional[str]
    is_recorded_setting: bool  # The settings of the recorded run.
    is_default: bool  # Nothing but what the recorded settings say besides the keys that are searched.
    # No other row is at least as good in failures, peak, estimated stall and risk, and better in one of them.
    is_pareto_best: bool
    is_recommended: bool  # The row that the advice is about, or the recorded settings where nothing is to be pasted.
    failing_traces: int  # Number of traces in which a request failed.
    ooms: int  # Number of failed requests, all traces together.
    # Peak of reserved memory over the trace's lowest peak, less 1, a share of 1; of several traces the greatest.
    worst_regret: float
    driver_calls: int  # Number of calls that obtain or return memory, all traces together.
    estimated_driver_ns: int  # Nanoseconds of those calls by the simulated device's cost model, all traces together.
    retries: int  # Number of requests for which the cache went back to the device, all traces together.
    risk: Literal["none", "note", "caution", "not_recommended"]  # The worst level of the risks.
    risks: Tuple[Risk, ...]  # What speaks against the setting.
    traces: Tuple[TraceRow, ...]  # The figures of each trace, in the order of the inputs.


@dataclasses.dataclass(frozen=True)
class Note:
    name: str  # Stable key of the note.
    message: str  # The note in words.
    traces: Tuple[int, ...]  # The traces that it holds for: positions in traces, from 0, ascending.
    counts: Tuple[int, ...]  # How often it occurred in each of them.


@dataclasses.dataclass(frozen=True, repr=False)
class Sweep(Answer):
    paste: Optional[str]  # Line for the shell; null where no setting is better than the recorded ones.
    advice: str  # What that line would do, or why nothing is to be pasted.
    is_search: bool  # False where only the settings of --confs were replayed.
    is_complete: bool  # True where every setting of the space was replayed.
    is_stopped: bool  # True where --seconds ended the search.
    space_size: Optional[int]  # Number of settings the search could offer; null without a search.
    budget_replays: Optional[int]  # Number of replays the search could take; null without a search.
    replays: int  # Number of replays made, those of the recorded settings among them.
    traces: Tuple[Trace, ...]  # The inputs, in the order given.
    rows: Tuple[Row, ...]  # The settings replayed, best first.
    # How the traces were replayed, and what was guessed, skipped or is not known; what holds for several of them once.
    notes: Tuple[Note, ...]
