"""What `ashlar explain` answers. Sizes are bytes; None: not known.

One explanation, or an array of them where a text holds several out-of-memory messages, or several files were given.
Sizes are bytes; null means that the input does not tell.

Made from docs/schemas/explain.schema.json by python/make_results.py.
"""

import dataclasses
from typing import Literal, Optional, Tuple

from ashlar_gpu._answer import ExplanationAnswer


@dataclasses.dataclass(frozen=True)
class Accounting:
    total_bytes: Optional[int]  # Bytes of the device = reserved + outside + free.
    allocated_bytes: Optional[int]  # Bytes of the live blocks = live + rounding.
    # Bytes of all segments = live + rounding + pending + stranded + whole_free + private_pool.
    reserved_bytes: Optional[int]
    live_bytes: Optional[int]  # Bytes the callers of the live blocks asked for.
    rounding_bytes: Optional[int]  # Bytes those blocks span beyond that.
    pending_bytes: Optional[int]  # Bytes freed by the program, still waiting for work on another stream.
    stranded_bytes: Optional[int]  # Free bytes in segments that hold a block in use.
    whole_free_bytes: Optional[int]  # Bytes of segments without a block in use: the cache can return them.
    private_pool_bytes: Optional[int]  # Free bytes inside private pools.
    # Bytes of the device that this allocator does not hold: CUDA context, libraries, other processes.
    outside_bytes: Optional[int]
    free_bytes: Optional[int]  # Bytes that the device reported as free.


@dataclasses.dataclass(frozen=True)
class Peak:
    allocated_bytes: Optional[int]  # Greatest sum of live blocks, bytes.
    active_bytes: Optional[int]  # Greatest sum of live and pending blocks, bytes.
    reserved_bytes: Optional[int]  # Greatest sum of segments, bytes.
    utilisation: Optional[float]  # Peak allocated / peak reserved, a share of 1.


@dataclasses.dataclass(frozen=True)
class Stack:
    bytes: int  # Bytes of the blocks.
    blocks: int  # Number of blocks.
    label: str  # File, line and function nearest to the program's own code.


@dataclasses.dataclass(frozen=True)
class Size:
    bytes: int  # Bytes of the blocks.
    blocks: int  # Number of blocks.
    block_bytes: int  # Bytes of each of them.
    stream: int  # The stream that they are of.


@dataclasses.dataclass(frozen=True)
class Holder:
    kind: str  # As names.schema.json has it: parameter, optimizer_state, graph, local, cycle, not_found and others.
    name: str  # As a person would say it: losses[], model.layers.*.weight.
    file: Optional[str]  # Of the variable's scope; of what nobody holds, where it was allocated; null: not known.
    line: Optional[int]  # Where that scope stands; null: not known.
    function: Optional[str]  # That function; null: none, or not known.
    nodes: Optional[int]  # Nodes of its graph; null: it is none.
    bytes: int  # Requested bytes of its blocks.
    blocks: int  # Number of them.
    # Of a holder that grows: the first step whose blocks it still holds, from 1; null: it does not grow, or the trace
    # does not say.
    since_step: Optional[int]
    steps: Optional[int]  # How many steps' blocks it holds; null likewise.
    bytes_per_step: Optional[int]  # Of each of them, on average; null likewise.


@dataclasses.dataclass(frozen=True)
class Held:
    when: str  # The moment at which the program's objects were looked at.
    live_bytes: int  # Requested bytes of the live blocks: the sum of all holders.
    named_bytes: int  # Of them, those that somebody holds.
    bound: Optional[str]  # What ended the look early, time or objects: some names are missing; null: nothing.
    not_live_blocks: int  # Blocks with a name that were not live then.
    holders: Tuple[Holder, ...]  # Most bytes first; each live block has one.


@dataclasses.dataclass(frozen=True)
class Label:
    label: str  # The text, as the program gave it.
    # metadata: the thread's when the block was allocated, so that such lines share no block; annotation: put on the
    # block later, a block counts in each of its own; internal: the allocator's mark.
    kind: Literal["metadata", "annotation", "internal"]
    bytes: int  # Bytes of the blocks.
    blocks: int  # Number of blocks.


@dataclasses.dataclass(frozen=True)
class PinnedHost:
    held_bytes: int  # Bytes obtained from the system.
    in_use_bytes: int  # Bytes of these that the program uses.
    # The most held since recording began; null where events and state contradict each other.
    peak_held_bytes: Optional[int]
    peak_in_use_bytes: Optional[int]  # The most in use since recording began; null as above.
    blocks: int  # Blocks in use.
    events: int  # Events recorded.


@dataclasses.dataclass(frozen=True)
class LiveAtEnd:
    bytes: int  # Bytes of the allocations that were not freed.
    blocks: int  # Number of those.
    stacks: Tuple[Stack, ...]  # The lines that made them, most bytes first, five at the most.


@dataclasses.dataclass(frozen=True)
class OwnedBytes:
    owner: str  # NCCL, cuBLAS, the program (simulate), libmine.so.
    file: Optional[str]  # Of the code that asked the device; null: not known.
    bytes: int  # Bytes of its allocations, as it asked for them.
    blocks: int  # Number of those.


@dataclasses.dataclass(frozen=True)
class ByLibrary:
    # Live allocations by the library whose code asked, most bytes first; beside PyTorch's allocator as the snapshot was
    # made.
    owners: Tuple[OwnedBytes, ...]
    # Of the device, by all processes, as the driver said when the program had asked for most, or as it was at the
    # failed request of PyTorch's allocator; null: not known.
    in_use_bytes: Optional[int]
    # Of that, what the program had not asked for: its context and kernels, what pools hold, other processes.
    rest_bytes: Optional[int]


@dataclasses.dataclass(frozen=True)
class MessageFigure:
    name: str  # What it is of: limit, weights, activations, kv_cache and the like.
    bytes: int  # The middle of what the print can stand for.
    printed: str  # As in the text.


@dataclasses.dataclass(frozen=True)
class Message:
    family: str  # Who raised it: pt-capacity, jax-xla, vllm, ggml and the like.
    device: Optional[int]  # As the message numbers it.
    truncated: bool  # Its beginning or end is missing, as far as can be seen.
    told: int  # How often the text tells this same failure.
    figures: Tuple[MessageFigure, ...]  # What it and the log beside it tell, other than the parts of the accounting.


@dataclasses.dataclass(frozen=True)
class RaisedAt:
    line: str  # The innermost of the program's own lines.
    code: Optional[str]  # What stands on that line.
    path: Tuple[str, ...]  # The program's own lines that lead there and itself, outermost first.


@dataclasses.dataclass(frozen=True)
class Rung:
    name: str  # What the allocator tries.
    bytes: int  # Bytes it could make available, on the state in which the ladder began.
    would_serve: bool  # Whether the request fits after it.
    remark: Optional[str]  # Why not, or what is not in the trace.


@dataclasses.dataclass(frozen=True)
class Release:
    bytes: int  # Bytes of those live blocks; 0: made again, the request fits.
    blocks: int  # Number of them.
    lower_bound_bytes: int  # No set with fewer bytes can do.
    is_minimal: bool  # The set found is proven to have the fewest bytes.
    is_one_run: bool  # They lie in a row; false: they hold whole segments, which go back to the device.
    stacks: Tuple[Stack, ...]  # The lines that allocated them, most bytes first, three at the most.


@dataclasses.dataclass(frozen=True)
class Failure:
    event: int  # Index of the error among the events.
    request_bytes: int  # Bytes of the request after rounding.
    segment_bytes: int  # Bytes of the new segment it would have needed.
    device_free_bytes: int  # Bytes that the device reported as free.
    stream: int  # Stream of the request, as the recorder's integer.
    # Pool of the request; [0, 0] is the default pool, and what is taken where the trace names none.
    pool_id: Tuple[int, int]
    is_small_pool: bool  # Whether it belongs to the pool for requests up to 1 MiB.
    is_limited: bool  # The device had room for the segment: a memory fraction or another limit refused it.
    # Greatest request that would have succeeded in that pool and stream, bytes after rounding.
    largest_servable_bytes: int
    largest_cached_bytes: int  # The same from the cache alone, bytes.
    free_in_other_streams_bytes: int  # Bytes of the largest free run that only its stream keeps away.
    free_in_other_pools_bytes: int  # Bytes of the largest free run that only its pool keeps away.
    returned_bytes: int  # Bytes that went back to the device right before the error.
    returned_segments: int  # Segments (or ranges of pages) that went back then.
    rungs: Tuple[Rung, ...]  # The retry ladder in its order.
    release: Optional[Release]  # The fewest live bytes whose release makes room; null: no set is known to be enough.


@dataclasses.dataclass(frozen=True)
class Pin:
    label: str  # File, line and function that allocated the blocks, or a block's address.
    blame_bytes: int  # Stranded bytes attributed to them.
    size_bytes: int  # Bytes of the blocks.
    blocks: int  # Number of them.
    oldest_event: Optional[int]  # Event at which the oldest was allocated; null: before the recording began.
    phase: Optional[str]  # Step or phase of the program at that event; null: not known.


@dataclasses.dataclass(frozen=True)
class Pins:
    lines: Tuple[Pin, ...]  # Most blame first; by line of code, by block where the trace has no stacks.
    other_blame_bytes: int  # Blame of all other blocks, bytes. Together with the lines: accounting.stranded_bytes.
    other_blocks: int  # Number of those.


@dataclasses.dataclass(frozen=True)
class EventRange:
    begin_event: int  # Its first event, from 0.
    end_event: int  # One past its last event.


@dataclasses.dataclass(frozen=True)
class Phase:
    name: str  # Told from stacks, or the mark's own name.
    begin_event: int  # Its first event, from 0.
    end_event: int  # One past its last event.


@dataclasses.dataclass(frozen=True)
class Leak:
    label: str  # File, line and function nearest to the program's own code.
    bytes_per_step: int  # What the median step leaves behind, in bytes.
    blocks: int  # Blocks of all steps together.
    bytes: int  # Bytes alive at the end of the last whole step.


@dataclasses.dataclass(frozen=True)
class Program:
    # The program's own marks, the period of its requests, or neither.
    steps_source: Literal["none", "annotations", "period"]
    steps_told_from_sizes: bool  # True where the trace has no stacks: what repeats may be the layers of one pass.
    regularity: Optional[float]  # Of a period: share of the requests, 0 to 1, that repeat one step later.
    moment: Optional[str]  # Step (from 1) and phase that the moment lies in, as far as known.
    steps: Tuple[EventRange, ...]  # Whole steps, in order.
    phases: Tuple[Phase, ...]  # Forward, backward, optimizer, marks of the program; by first event, may nest.
    leaks: Tuple[Leak, ...]  # What each step leaves behind, most bytes a step first.


@dataclasses.dataclass(frozen=True)
class HolderName:
    kind: str  # As names.schema.json has it: parameter, optimizer_state, graph, local, cycle, not_found and others.
    name: str  # As a person would say it: losses[], model.layers.*.weight.
    file: Optional[str]  # Of the variable's scope; of what nobody holds, where it was allocated; null: not known.
    line: Optional[int]  # Where that scope stands; null: not known.
    function: Optional[str]  # That function; null: none, or not known.


@dataclasses.dataclass(frozen=True)
class FixRow:
    peak_reserved_bytes: int  # Greatest sum of segments, bytes.
    ooms: int  # Number of failed requests.
    retries: int  # Number of requests for which the cache went back to the device.
    driver_calls: int  # Number of calls that obtain or return memory.


@dataclasses.dataclass(frozen=True)
class Fix:
    change: str  # What was changed.
    is_setting: bool  # True for a setting of the allocator, false for a change of the program.
    before: FixRow  # The replay without the change.
    after: FixRow  # The replay with it.
    shows_symptom: bool  # Whether the replay without the change shows the symptom.
    removes_symptom: bool  # Whether the change takes the symptom away.


@dataclasses.dataclass(frozen=True)
class Cause:
    name: str  # Stable key, see ashlar guide explain.
    sentence: str  # What the cause is, in one sentence.
    finding: Literal["found", "absent", "not_in_trace"]  # Whether it was found; not_in_trace: the input cannot show it.
    # Of a found one; proven: seen, by the figures, by the blocks' own frames and lives, or by a replay of all requests
    # under another setting or with other calls. A replay without the cause's own blocks proves nothing, and none is
    # made.
    confidence: Optional[Literal["possible", "likely", "proven"]]
    bytes: Optional[int]  # Bytes that a found one explains.
    # Of those, what the program would have asked for after the failure; 0 where nothing is known to come.
    to_come_bytes: int
    is_footnote: bool  # True where it would have let the failed request pass, and is too little to be felt.
    evidence: Tuple[str, ...]  # What speaks for it.
    counter_evidence: Tuple[str, ...]  # What speaks against it.
    missing: Optional[str]  # What would tell, where the input cannot show it.
    lines: Tuple[str, ...]  # Lines of the program it is about, most bytes first.
    # The variables that keep its memory and prove it, most bytes first; empty: lines and times tell it.
    held_by: Tuple[HolderName, ...]
    fix: Optional[Fix]  # The replay that takes a found one away; null where none can.


@dataclasses.dataclass(frozen=True)
class ProgramRemedy:
    cause: str  # The cause it takes away, by its key.
    sentence: str  # What to change.
    python: Tuple[str, ...]  # The lines to write.
    bytes: int  # Bytes that the cause explains at the moment looked at.
    # Bytes off the peak of reserved memory in a replay with the change; null: not replayed.
    replayed_bytes: Optional[int]
    is_proven: bool  # Whether the symptom is gone in that replay.


@dataclasses.dataclass(frozen=True)
class Fidelity:
    matched: int  # Allocations that landed at the recorded address, and recorded failures that failed again.
    total: int  # Recorded allocations, failed ones included.
    segments_matched: int  # Segments obtained and returned as recorded.
    segments_total: int  # Segments obtained and returned in the record.
    final_state_matches: bool  # Whether the final segments and blocks are equal.
    segment_addresses_used: int  # Addresses of new segments taken from the record.
    tails_inferred: int  # Unsplit rests of older blocks told by later addresses.


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
class WhatIf:
    conf: str  # As for PYTORCH_CUDA_ALLOC_CONF; empty: the default settings.
    is_recorded_setting: bool  # The settings of the recorded run.
    peak_reserved_bytes: int  # Greatest sum of segments, bytes.
    peak_allocated_bytes: int  # Greatest sum of live blocks, bytes.
    ooms: int  # Number of failed requests.
    driver_calls: int  # Number of calls that obtain or return memory.
    estimated_driver_ns: int  # Nanoseconds of those calls by the simulated device's cost model.
    feasible: Optional[bool]  # No request failed; null where the capacity is not known.
    # The request that ended the recorded run is served; null where none ended it, or the capacity is not known.
    gets_past: Optional[bool]
    # What would have come after that request, told from the step before; null where it is not served, or nothing is
    # known.
    projected: Optional[Projected]


@dataclasses.dataclass(frozen=True)
class OwnAllocator:
    what_if: WhatIf  # The same requests replayed from an empty allocator under policy:ashlar.
    sentence: Optional[str]  # What it would do; null where it does not help either.
    # Line for the shell that starts the program with it; null where it does not mend what was recorded.
    run: Optional[str]


@dataclasses.dataclass(frozen=True)
class SettingRun:
    conf: str  # For PYTORCH_CUDA_ALLOC_CONF.
    ends: bool  # To its end; false: a request found no memory again.
    peak_reserved_bytes: int  # Of that run.


@dataclasses.dataclass(frozen=True)
class Elsewhere:
    card: Optional[str]  # Its name in the table of GPUs; null where a size was given.
    total_bytes: int  # Its memory.
    allocator_bytes: int  # What is left of it beside the context.
    fits: Optional[bool]  # Null where the input does not tell all that the program would ask for.
    # The settings that the answer is about, as for PYTORCH_CUDA_ALLOC_CONF; null where none was replayed, or none
    # helps.
    conf: Optional[str]
    peak_bytes: Optional[int]  # Greatest sum of segments under them.
    sentence: str  # The answer in words.


@dataclasses.dataclass(frozen=True)
class Action:
    # How it is known: the program was run again with it, the recorded requests were replayed with it, the bytes of its
    # cause say it, or a message alone does not tell.
    proof: Literal["run", "replayed", "estimated", "not proven"]
    what: Optional[str]  # A sentence; null where the lines say it.
    lines: Tuple[str, ...]  # For the shell, or for the program.
    gain: Optional[str]  # What it changes; null: not known.


@dataclasses.dataclass(frozen=True)
class Note:
    name: str  # Stable key.
    message: str  # One sentence.
    count: int  # How often.


@dataclasses.dataclass(frozen=True, repr=False)
class Explanation(ExplanationAnswer):
    source: str  # What was read: kind, generation, device, number of events.
    headline: str  # What happened, in one line.
    # Kind of the failure, see ashlar guide explain.
    verdict: Literal["capacity", "nearly_full", "fragmentation", "outside", "limit", "leak", "host_memory", "healthy", "unknown"]
    # False where rounding of printed figures, or what the input leaves out, could change the verdict.
    verdict_certain: bool
    evidence: Tuple[str, ...]  # Plain sentences, the verdict's own first.
    moment: Optional[str]  # When accounting and stacks were taken.
    accounting: Accounting  # Where the bytes were at that moment.
    tried_bytes: Optional[int]  # Bytes of the new segment that was asked of the device.
    request_bytes: Optional[int]  # Bytes the program asked for, where the input tells them exactly.
    # Lowest and highest bytes the program can have asked for, both included.
    request_interval_bytes: Optional[Tuple[int, int]]
    headroom_bytes: Optional[int]  # Bytes to spare if there were no holes at all; negative: does not fit even then.
    # Lowest and highest headroom in bytes, given how the figures were rounded.
    headroom_interval_bytes: Optional[Tuple[int, int]]
    peak: Peak  # Greatest values over the recorded window.
    stacks: Tuple[Stack, ...]  # Live blocks by the line that allocated them, biggest first.
    sizes: Tuple[Size, ...]  # Where the input names no block: live blocks by size and stream, biggest first.
    # Who holds the live blocks, by name in the program; null where the input has no names (names.schema.json).
    held: Optional[Held]
    # Live blocks by the texts that the program put on them, most bytes first, five of each kind; empty where there are
    # none.
    labels: Tuple[Label, ...]
    # Pinned memory of the host at the end of the recording; null where it was not recorded.
    pinned_host: Optional[PinnedHost]
    # What a program that calls the device itself had not freed when the trace ends; null for the trace of an allocator.
    live_at_end: Optional[LiveAtEnd]
    # Whose the memory is, of a program that calls the device itself; null for the trace of an allocator, and where no
    # stacks were recorded.
    by_library: Optional[ByLibrary]
    message: Optional[Message]  # Of an out-of-memory message: who raised it, and its figures; null without one.
    # Where in the program a failure was raised, from the traceback beside its message; null without one.
    raised_at: Optional[RaisedAt]
    failure: Optional[Failure]  # Why the last out-of-memory error of a trace happened; null without one.
    pins: Pins  # Which blocks keep free memory from being used or returned, at that moment.
    program: Program  # Its steps and phases, and what each step leaves behind.
    # Every cause looked for: found ones first, by the bytes that their cure frees times how sure they are; then absent
    # ones; then those the input cannot show.
    causes: Tuple[Cause, ...]
    # What the program itself can change, for causes found as likely or proven where something needs a change; in the
    # order of the causes.
    program_remedies: Tuple[ProgramRemedy, ...]
    # How exactly the recorded settings reproduce the record; null without a recorded allocation.
    fidelity: Optional[Fidelity]
    replayed_as: Optional[str]  # Version, order of free blocks and what spoke for them; null without a replay.
    # Bytes the allocator could have in every row of what_if; null: not known, never runs out.
    what_if_capacity_bytes: Optional[int]
    # The same requests replayed from an empty allocator under each setting, the baseline's row first.
    what_if: Tuple[WhatIf, ...]
    paste: Optional[str]  # Line for the shell; null where no setting helps.
    advice: Optional[str]  # What that line would do, or that no setting helps.
    # What Ashlar's own allocator would have done; null where nothing failed or was returned to serve a request, or a
    # setting mends it.
    own_allocator: Optional[OwnAllocator]
    # The program itself, run again by a dry run under a setting that gets past its failed request; null where it was
    # not.
    run_again: Optional[SettingRun]
    # Whether the run would fit another device that was asked about; null where none was.
    elsewhere: Optional[Elsewhere]
    next_step: Optional[str]  # How to learn more.
    next_lines: Tuple[str, ...]  # Lines of Python for the next step, or a command.
    actions: Tuple[Action, ...]  # What to do, at most three, the surest first; empty: nothing is known to help.
    notes: Tuple[Note, ...]  # What was guessed, skipped or is not known.
    others: Tuple["Explanation", ...]  # what else the input held: other messages of a log, other files
