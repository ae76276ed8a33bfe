"""What PyTorch offers around memory, each asked once: the answers are the same under its own allocator and under Ashlar's.

Answers are values, without addresses and times. What a release has not fails the same way in both. Behaviours of PyTorch's own tests of memory, and of what its documents say.
"""

import gc
import warnings

import torch
from tell import tell

MIB = 1 << 20
answers = {}
warnings.simplefilter("ignore")


def asks(question):
    """The answer of a question, or how it failed."""

    def ask(function):
        gc.collect()
        torch.cuda.memory._record_memory_history(None)
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        torch.cuda.reset_accumulated_memory_stats()
        try:
            answers[question] = function()
        except Exception as error:
            answers[question] = type(error).__name__
        return function

    return ask


def block(mib=1):
    return torch.empty(int(mib * MIB), dtype=torch.uint8, device="cuda")


def entries(trace=None):
    """(action, bytes) of device 0's history."""
    trace = trace or torch.cuda.memory._snapshot()["device_traces"][0]
    return [(entry["action"], entry["size"]) for entry in trace]


def shapes(segments):
    return sorted((segment["total_size"], segment["segment_type"], segment["allocated_size"], segment["active_size"],
                   segment["requested_size"], segment["is_expandable"], tuple(segment["segment_pool_id"]) != (0, 0),
                   [(one["size"], one["state"], one["state"] == "inactive" or one["requested_size"])
                    for one in segment["blocks"]])
                  for segment in segments)


@asks("statistics")
def statistics():
    kept = [block(i) for i in (1, 3, 12, 0.001)]
    del kept[1]
    kept.append(block(2))
    stats = dict(torch.cuda.memory_stats())
    return stats


@asks("statistics after their resets")
def resets():
    kept = [block(4), block(30)]
    del kept[0]
    torch.cuda.reset_peak_memory_stats()
    torch.cuda.reset_accumulated_memory_stats()
    kept.append(block(2))
    return dict(torch.cuda.memory_stats())


@asks("torch.accelerator")
def accelerator():
    if not hasattr(torch, "accelerator") or not hasattr(torch.accelerator, "memory_stats"):
        return "not in this release"
    kept = [block(4), block(30)]
    del kept[0]
    out = [torch.accelerator.memory_allocated(), torch.accelerator.max_memory_reserved()]
    torch.accelerator.empty_cache()
    return out + [torch.accelerator.memory_reserved(), len(torch.accelerator.memory_stats()) > 40]


@asks("a snapshot's segments")
def segments():
    kept = [block(4), block(0.3), block(30)]
    del kept[1]
    return shapes(torch.cuda.memory_snapshot()), len(kept)


def names(entry):
    """Of the functions of this program; what runs it may be another module."""
    found = [frame["name"] for frame in entry["frames"]]
    return found[:found.index("<module>")] if "<module>" in found else found


def where_it_came():
    return block(30)


@asks("Python stacks")
def python_stacks():
    torch.cuda.memory._record_memory_history(stacks="python", max_entries=100)
    kept = where_it_came()
    snapshot = torch.cuda.memory._snapshot()
    frames = [names(entry) for entry in snapshot["device_traces"][0] if "frames" in entry]
    held = [one for segment in snapshot["segments"] for one in segment["blocks"] if one["state"] == "active_allocated"]
    return frames, [names(one) for one in held], [names(one) for one in snapshot["segments"]], kept.numel()


@asks("C++ stacks")
def cpp_stacks():
    torch.cuda.memory._record_memory_history(stacks="all", max_entries=100)
    kept = where_it_came()
    [entry] = [entry for entry in torch.cuda.memory._snapshot()["device_traces"][0] if entry["action"] == "alloc"]
    names = [frame["name"] for frame in entry["frames"]]
    return "where_it_came" in names, any(name.startswith("at::") for name in names), kept.numel()


@asks("stacks of frees")
def stacks_of_frees():
    def drop(kept):
        kept.clear()

    torch.cuda.memory._record_memory_history(stacks="python", context="all", max_entries=100)
    drop([where_it_came()])
    return [(entry["action"], [frame["name"] for frame in entry["frames"]][:2])
            for entry in torch.cuda.memory._snapshot()["device_traces"][0] if "frames" in entry]


@asks("a history of states only")
def states_only():
    torch.cuda.memory._record_memory_history("state", stacks="python")
    kept = where_it_came()
    snapshot = torch.cuda.memory._snapshot()
    held = [one for segment in snapshot["segments"] for one in segment["blocks"] if one["state"] == "active_allocated"]
    return entries(), [[frame["name"] for frame in one["frames"]][:2] for one in held], kept.numel()


@asks("a history's entries")
def history():
    torch.cuda.memory._record_memory_history(max_entries=1000)
    side = torch.cuda.Stream()
    kept = [block(30), block(3)]
    kept[0].record_stream(side)
    del kept[0]
    torch.cuda.synchronize()
    kept.append(block(30))
    torch.cuda.empty_cache()
    return entries(), entries()


@asks("max_entries")
def most_entries():
    torch.cuda.memory._record_memory_history(max_entries=3)
    for size in (1, 2, 3, 4):
        block(size)
    return entries()


@asks("clear_history")
def clears():
    torch.cuda.memory._record_memory_history(max_entries=10)
    block(3)
    torch.cuda.memory._record_memory_history(max_entries=10, clear_history=True)
    block(4)
    return entries()


@asks("skip_actions")
def skips():
    torch.cuda.memory._record_memory_history(max_entries=100, skip_actions=["free_requested", "segment_alloc"])
    block(3)
    return entries()


@asks("whether a history is on")
def is_on():
    before = torch._C._cuda_isHistoryEnabled()
    torch.cuda.memory._record_memory_history()
    return before, torch._C._cuda_isHistoryEnabled()


@asks("user metadata")
def metadata():
    torch.cuda.memory._record_memory_history(max_entries=100)
    torch.cuda.memory._set_memory_metadata("phase one")
    kept = block(3)
    torch.cuda.memory._set_memory_metadata("")
    more = block(3)
    told = torch.cuda.memory._memory_metadata_supported()
    return told, [entry.get("user_metadata") for entry in torch.cuda.memory._snapshot()["device_traces"][0]], len(kept) + len(more)


@asks("annotated memory")
def annotated():
    torch.cuda.memory._record_memory_history(max_entries=100)
    kept = block(3)
    torch.cuda.memory._annotate_tensor(kept, "the KV cache")
    return [(entry["action"], entry["size"], entry.get("user_metadata"), entry["stream"], entry["addr"] == kept.data_ptr())
            for entry in torch.cuda.memory._snapshot()["device_traces"][0]]


@asks("annotations")
def annotations():
    torch.cuda.memory._record_memory_history(max_entries=100, global_record_annotations=True)
    with torch.profiler.record_function("forward"):
        block(3)
    found = torch.cuda.memory._snapshot()["external_annotations"]
    return [(one.get("stage"), one.get("name"), one.get("device")) for one in found]


@asks("settings of a snapshot")
def settings():
    return torch.cuda.memory._snapshot()["allocator_settings"]


@asks("settings that change")
def changed():
    change = getattr(torch._C, "_accelerator_setAllocatorSettings", None) or torch.cuda.memory._set_allocator_settings
    change("max_split_size_mb:64")
    kept = [block(100), block(3)]
    del kept[0]
    small = block(20)  # by the rule it takes no oversize block
    told = torch.cuda.memory._snapshot()["allocator_settings"]["max_split_size"]
    return told, torch.cuda.memory_reserved(), small.numel(), len(kept)


@asks("MemPool")
def pool():
    own = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(own):
        inside = block(30)
        within = own.use_count()
    outside = block(30)
    out = [own.use_count(), within, shapes(own.snapshot()), torch.cuda.memory_reserved()]
    del inside
    torch.cuda.empty_cache()
    out.append(torch.cuda.memory_reserved())
    del own
    gc.collect()
    return out + [torch.cuda.memory_reserved(), outside.numel()]


@asks("MemPool(no_split)")
def no_split():
    own = torch.cuda.MemPool(no_split=True)
    with torch.cuda.use_mem_pool(own):
        kept = block(30)
        del kept
        small = block(12)
    return shapes(own.snapshot()), small.numel()


@asks("MemPool(use_on_oom)")
def use_on_oom():
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(100 * MIB / total)
    try:
        own = torch.cuda.MemPool(use_on_oom=True)
        with torch.cuda.use_mem_pool(own):
            kept = block(60)
        del kept
        got = block(50).numel()
        return got, torch.cuda.memory_reserved()
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)


@asks("what a pool's snapshot tells")
def pool_history():
    torch.cuda.memory._record_memory_history(max_entries=100)
    own = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(own):
        inside = block(30)
    outside = block(3)
    found = torch._C._cuda_memorySnapshot((*own.id, True))
    return shapes(found["segments"]), entries(found["device_traces"][0]), inside.numel() + outside.numel()


@asks("private pools in the statistics")
def pool_statistics():
    own = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(own):
        inside = block(30)
    found = {name.partition(".")[2].partition(".")[2]: value for name, value in torch.cuda.memory_stats().items()
             if "private" in name and value}  # of this pool, and of no earlier one: sums were reset
    return found, inside.numel()


@asks("a CUDA graph")
def graph():
    rows = torch.ones(1000, 1000, device="cuda")
    captured = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.graph(captured):
        out = rows * 2
        more = out + 1
    captured.replay()
    reserved = torch.cuda.memory_reserved()
    del out, more, captured
    gc.collect()
    torch.cuda.empty_cache()
    return reserved, torch.cuda.memory_reserved()


@asks("the live blocks of a graph's pool")
def live_blocks():
    handle = torch.cuda.graph_pool_handle()
    rows = torch.ones(1 << 20, device="cuda")
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured, pool=handle):
        first = rows * 2
        second = torch.cat([rows, first])
    blocks = {one.untyped_storage().data_ptr() for one in (first, second)}
    del second
    known = torch._C._cuda_checkPoolLiveAllocations
    return known(0, handle, blocks), known(0, handle, {first.untyped_storage().data_ptr()})


@asks("an error of memory")
def failure():
    seen = []
    torch._C._cuda_attach_out_of_memory_observer(lambda *words: seen.append(words))
    try:
        block(1 << 24)
    except torch.cuda.OutOfMemoryError as error:
        return (str(error).startswith("CUDA out of memory. "), [(words[0], words[1]) for words in seen],
                torch.cuda.memory_stats()["num_ooms"])
    return "served"


@asks("a fraction")
def fraction():
    torch.cuda.set_per_process_memory_fraction(0.25)
    out = [torch.cuda.get_per_process_memory_fraction()]
    try:
        block(40 << 10)
    except torch.cuda.OutOfMemoryError:
        out.append("refused")
    torch.cuda.set_per_process_memory_fraction(1.0)
    return out


@asks("without the cache")
def uncached():
    torch.cuda.caching_allocator_enable(False)
    try:
        kept = block(30)
        return torch.cuda.memory_allocated(), torch.cuda.memory_reserved(), kept.numel()
    finally:
        torch.cuda.caching_allocator_enable(True)


@asks("cudnn.benchmark")
def benchmark():
    torch.backends.cudnn.benchmark = True
    try:
        out = torch.nn.Conv2d(3, 8, 3).cuda()(torch.zeros(1, 3, 32, 32, device="cuda"))
        return torch.backends.cudnn.benchmark, tuple(out.shape)
    finally:
        torch.backends.cudnn.benchmark = False


@asks("the profiler's memory")
def profiler():
    with torch.profiler.profile(profile_memory=True, activities=[torch.profiler.ProfilerActivity.CPU]) as found:
        kept = torch.ones(1000, 1000, device="cuda") * 2
        del kept
    by_name = {one.key: getattr(one, "self_device_memory_usage", None) for one in found.key_averages()}
    return {name: value for name, value in by_name.items() if value}


@asks("a tensor for another process")
def shared():
    kept = [block(3), block(2)]
    handle = kept[1].untyped_storage()._share_cuda_()
    return handle[0], len(handle[1]) > 60, handle[2], handle[3]


@asks("memory of several streams")
def streams():
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        kept = block(30)
    kept.record_stream(torch.cuda.current_stream())
    kept.record_stream(side)
    del kept
    block(30)
    return torch.cuda.memory_reserved(), [s["stream"] != 0 for s in torch.cuda.memory_snapshot()]


@asks("raw memory")
def raw():
    address = torch.cuda.caching_allocator_alloc(3 * MIB)
    held = torch.cuda.memory_allocated()
    torch.cuda.caching_allocator_delete(address)
    return held, torch.cuda.memory_allocated()


@asks("the largest free block")
def largest():
    base = block(30).untyped_storage()
    return base.nbytes(), torch.cuda.mem_get_info()[1] > 0


if __name__ == "__main__":
    tell("torch_memory", answers=answers, asked=len(answers))
