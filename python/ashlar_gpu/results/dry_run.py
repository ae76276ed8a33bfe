"""What `ashlar dry-run` answers. Sizes are bytes; None: not known.

What a dry run came to. Sizes are bytes; null means that it is not known.

Made from docs/schemas/dry-run.schema.json by python/make_results.py.
"""

import dataclasses
from typing import Literal, Optional, Tuple

from ashlar_gpu._answer import DryRunAnswer
from ashlar_gpu.results.explanation import Explanation


@dataclasses.dataclass(frozen=True)
class Condition:
    who: str  # NCCL, or libraries where none alone decides.
    bytes: int  # With more than this it does not fit.


@dataclasses.dataclass(frozen=True)
class Ended:
    # What kind of end it was; process: one of several was killed or aborted, and the program ended with 0.
    by: Literal["exit_code", "signal", "exception", "process"]
    what: str  # In words, such as 'signal 9 (SIGKILL)' or 'ValueError: no such file'.


@dataclasses.dataclass(frozen=True)
class Value:
    bytes: int  # The value.
    mark: Literal["measured", "published", "assumed", "given"]  # How it is known.
    source: str  # Where it is from.


@dataclasses.dataclass(frozen=True)
class Machine:
    card: Optional[str]  # Its name in the table of GPUs; null where none was named.
    devices: int  # How many of them.
    has_limit: bool  # Whether memory can run out.
    total: Value  # Memory of a device, as cudaMemGetInfo gives it.
    context: Value  # What a process's CUDA context takes of it.


@dataclasses.dataclass(frozen=True)
class Role:
    rank: int  # That was run.
    what: str  # Which of the ranks it is: a stage of a pipeline, the last of a group.
    # The ranks that are taken to take as much, this one among them; empty where it was run to compare and is like
    # another.
    stands_for: Tuple[int, ...]
    fits: Optional[bool]  # As fits of the whole.
    peak_bytes: int  # Of its device, contexts included.
    peak_allocated_bytes: int  # Of PyTorch's allocator; 0 without PyTorch.
    beside_least_bytes: int  # What libraries take on top on a GPU, at least.
    beside_most_bytes: int  # And at most.
    communicators: int  # Of NCCL, that were there together.
    why_not: Optional[str]  # Why it did not come to its end; null where it did.


@dataclasses.dataclass(frozen=True)
class Ranks:
    ranks: int  # Of the world.
    ranks_per_node: int  # On each machine.
    decides: Optional[int]  # The rank that the rest of the report is of; null where no roles were run.
    why_no_roles: Optional[str]  # Why no others were run; null where they were.
    roles: Tuple[Role, ...]  # In the order of their runs.
    compared: Tuple[str, ...]  # What was held against each other, a line each.
    assumed: Tuple[str, ...]  # What is taken to be symmetric, a line each.


@dataclasses.dataclass(frozen=True)
class Library:
    # Of its file, such as libc10_cuda.so, which is PyTorch's allocator; null where it is not known.
    name: Optional[str]
    bytes: int  # As it asked for them.


@dataclasses.dataclass(frozen=True)
class Device:
    ordinal: int  # As CUDA counts them.
    total_bytes: int  # Its memory.
    context_bytes: int  # Of each process.
    peak_bytes: int  # Of all processes on it, contexts included.
    used_at_end_bytes: int  # When this process ended.
    out_of_memory: int  # Calls of this process that found no memory; PyTorch tries again after one.
    # By the library that called: what this process had asked for when that was most. Most bytes first.
    libraries: Tuple[Library, ...]


@dataclasses.dataclass(frozen=True)
class Books:
    devices: Tuple[Device, ...]  # Those that it used.
    pinned_peak_bytes: int  # Pinned memory of the host.
    launches: int  # Pieces of work given to devices: none was run.
    # Queries of events that were answered 'done' though nothing had waited for the work: without lag it is done at
    # once.
    found_done: int


@dataclasses.dataclass(frozen=True)
class TorchDevice:
    index: int  # As PyTorch counts them.
    peak_allocated_bytes: int  # torch.cuda.max_memory_allocated().
    peak_reserved_bytes: int  # torch.cuda.max_memory_reserved().
    ooms: int  # num_ooms of its statistics.
    retries: int  # num_alloc_retries of its statistics.


@dataclasses.dataclass(frozen=True)
class Torch:
    version: str  # Of PyTorch.
    exception: Optional[str]  # That ended the process; null where none did.
    # Why there is no history of its allocator, as backend:cudaMallocAsync has none; null where there is one.
    not_kept: Optional[str]
    devices: Tuple[TorchDevice, ...]  # Those that it allocated on.


@dataclasses.dataclass(frozen=True)
class JaxDevice:
    index: int  # As JAX counts them.
    peak_in_use_bytes: int  # peak_bytes_in_use of memory_stats() at the end: what the program needs.
    reserved_bytes: int  # What JAX had of the device.
    limit_bytes: int  # bytes_limit: what it may have.


@dataclasses.dataclass(frozen=True)
class Jax:
    devices: Tuple[JaxDevice, ...]  # Those that it used.
    out_of_memory: Optional[str]  # The error of memory that ended the program; null where none did.


@dataclasses.dataclass(frozen=True)
class Vllm:
    weights_bytes: int  # Of the model.
    activations_bytes: int  # Of a step, at most.
    graphs_bytes: int  # Of CUDA graphs, as it estimates them.
    kv_cache_bytes: int  # What it took for its KV cache.
    requested_bytes: int  # Of the device, by its gpu_memory_utilization.
    tokens: int  # That its KV cache has room for; 0: not told.
    longest_request: int  # Tokens of a request at most: max_model_len.
    most_requests: int  # Requests at once at most: max_num_seqs.


@dataclasses.dataclass(frozen=True)
class Sglang:
    weights_bytes: int  # Of the model.
    kv_cache_bytes: int  # What it took for its KV cache.
    requested_bytes: int  # Of the device, by its mem_fraction_static.
    tokens: int  # That its KV cache has room for.


@dataclasses.dataclass(frozen=True)
class Process:
    pid: int  # The process's number.
    rank: Optional[int]  # Of a job of several.
    out_of_memory: int  # Requests of the program that failed; of one without PyTorch the calls that did.
    died: bool  # Whether it was killed or aborted while it held memory of a device.
    books: Optional[Books]  # Of the preloaded library; null where the process was killed.
    torch: Optional[Torch]  # What PyTorch's allocator says; null without PyTorch.
    jax: Optional[Jax]  # What JAX's allocator says at the end; null without JAX.
    vllm: Optional[Vllm]  # What vLLM measured and counts of itself; null where it did not.
    sglang: Optional[Sglang]  # What SGLang counted of itself; null where it did not.


@dataclasses.dataclass(frozen=True)
class CardRun:
    card: str  # Its name in the table of GPUs.
    capability: str  # Its compute capability: all cards of it have a verdict by this run.
    why_not: Optional[str]  # Why the run tells nothing; null where it does.


@dataclasses.dataclass(frozen=True)
class Outcome:
    conf: str  # As for PYTORCH_CUDA_ALLOC_CONF.
    fits: Optional[bool]  # Whether no request fails; null where there is no verdict.
    # Between the peak of reserved memory and allocator_bytes; null where a request fails.
    headroom_bytes: Optional[int]
    retries: int  # How often the cache had to be given back.
    failed_step: Optional[int]  # The step of the first request that fails, from 1.
    failed_at: Optional[str]  # Where that is, in words.


@dataclasses.dataclass(frozen=True)
class Card:
    card: str  # Its name in the table of GPUs.
    capability: str  # Its compute capability, such as '8.6'.
    ran_as: str  # The card that the program was run as: the row has the requests of that run.
    # Whether that card has this one's compute capability. Where it has another, this card may take other kernels and
    # other memory, and the outcomes say only what the card that ran would do with as much memory.
    has_verdict: bool
    # Whether the program's PyTorch was built for it; null where that is not known. False: it would fit, and not run.
    has_kernels: Optional[bool]
    total_bytes: int  # Its memory.
    allocator_bytes: int  # Without its context and what is outside.
    peak_allocated_bytes: int  # Live blocks of that run at most: with less nothing fits.
    default: Outcome  # Under the default settings.
    expandable: Optional[Outcome]  # With expandable segments; null where the release has none, or there is no verdict.
    # Under the best settings found; null where live blocks alone take more, or there is no verdict.
    best_found: Optional[Outcome]


@dataclasses.dataclass(frozen=True)
class Cards:
    # True: histories were replayed at each size. False, of native programs: the peak of the device's accounting was
    # held against each card.
    is_replayed: bool
    outside_bytes: int  # Of the device, neither the context's nor the allocator's.
    peak_allocated_bytes: int  # Live blocks of the first run at most.
    replays: int  # How many it took.
    runs: Tuple[CardRun, ...]  # As which cards the program was run again.
    why_no_runs: Optional[str]  # Why it was not run again; null where it was, or there was no other card to run it as.
    kept_away: Tuple[str, ...]  # Files that it would have written again, and did not.
    not_sent: Tuple[str, ...]  # What it would have connected to again, and did not: HOST:PORT.
    rows: Tuple[Card, ...]  # Least memory first.


@dataclasses.dataclass(frozen=True)
class MadeUpLine:
    line: str  # Of the program.
    count: int  # How many values it read.
    bytes: int  # Of all of them.


@dataclasses.dataclass(frozen=True)
class MadeUp:
    total: int  # How many: control flow may depend on them.
    lines: Tuple[MadeUpLine, ...]  # Most first.


@dataclasses.dataclass(frozen=True)
class GivenValue:
    flag: str  # As given: FILE:LINE=VALUE.
    reads: int  # How often the line read it; 0: the line read no value of a device.
    why_not: Optional[str]  # Why a read of the line was not given it, such as of a type that cannot hold it; else null.


@dataclasses.dataclass(frozen=True)
class ReadingLine:
    line: str  # Of the program.
    count: int  # How many values it read.


@dataclasses.dataclass(frozen=True)
class AccountPart:
    name: str  # Whose it is: PyTorch's allocator, CUDA context, NCCL.
    least_bytes: int  # It takes so much.
    most_bytes: int  # And perhaps as much as this; the same where it is known.
    in_peak: bool  # Whether peak_bytes has it; else it comes on top.
    # How it is known; computed: by the library's own rules and what the run called.
    mark: Literal["measured", "computed", "published", "assumed", "given"]
    source: str  # Where it is from.


@dataclasses.dataclass(frozen=True)
class Account:
    device: int  # The one that takes most, as CUDA counts them.
    peak_bytes: int  # Of all processes on it, contexts included.
    beside_least_bytes: int  # What libraries take on top on a GPU, at least.
    beside_most_bytes: int  # And at most.
    parts: Tuple[AccountPart, ...]  # First those of the peak; most bytes first.


@dataclasses.dataclass(frozen=True)
class CudnnWorkspaces:
    plans: int  # Of cuDNN's graph interface that differ, of all processes.
    answered: int  # Of these: they had the workspace that the library named; the others 0.
    largest_bytes: int  # The largest workspace.
    version: int  # Of the library, such as 92400; 0: not known.
    why_not: Optional[str]  # Why a plan had no answer; null where that was not told.


@dataclasses.dataclass(frozen=True)
class Assumption:
    what: str  # What was taken for granted.
    bytes: Optional[int]  # Its size; null where it is none.
    mark: Literal["measured", "published", "assumed", "given"]  # How it is known.
    source: str  # Where it is from, or why it is not known.


@dataclasses.dataclass(frozen=True)
class Call:
    name: str  # Of the function.
    count: int  # How often it was called.


@dataclasses.dataclass(frozen=True, repr=False)
class DryRun(DryRunAnswer):
    program: Tuple[str, ...]  # What was run, with its arguments.
    exit_code: int  # Its own; 128 + N where signal N ended it.
    # False: a request found no memory. True: none did, and the program came to its end. Null: no process used a device,
    # or the program ended before its end.
    fits: Optional[bool]
    # Where fits is true and libraries may take more than there is to spare: which, and how much is too much; else null.
    fits_unless: Optional[Condition]
    # With what the program ended before its end; null where it ended with exit code 0 and no process died. peak_bytes
    # is then what was seen until then.
    ended_early: Optional[Ended]
    peak_bytes: int  # Of the device that held most, contexts included.
    machine: Machine  # What it ran on.
    # Under --ranks, the roles that were run; the other keys are then of the one that decides. Else null.
    ranks: Optional[Ranks]
    processes: Tuple[Process, ...]  # By rank, then by number.
    cards: Optional[Cards]  # Which card is enough; null where the devices had a limit or there is no history.
    made_up: MadeUp  # Reads of what only a kernel would have written.
    given_values: Tuple[GivenValue, ...]  # What came of each --value, in their order.
    # Under --value, the lines of the program that read values of the device, known ones among them.
    value_reads: Tuple[ReadingLine, ...]
    # Whose the memory of a device is, and what libraries take beside it; null: no process left its accounting.
    account: Optional[Account]
    cudnn_workspaces: Optional[CudnnWorkspaces]  # Under --workspaces cudnn, what plans had; else null.
    assumptions: Tuple[Assumption, ...]  # What else was taken for granted.
    not_supported: Tuple[Call, ...]  # Calls that were answered so, most first.
    explained_pid: Optional[int]  # Whose history is explained.
    explanation: Optional[Explanation]  # As ashlar explain --json has it.
    notes: Tuple[str, ...]  # What could not be read, and what was kept.
