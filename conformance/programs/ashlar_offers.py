"""Ashlar as PyTorch's allocator: what its Python side answers, and the one line of what is not offered."""

import gc
import os
import pickle
import sys
import tempfile
import warnings

import torch
from tell import tell

import ashlar_gpu.torch as integration

MIB = 1 << 20
done = []


def check(name, held):
    assert held, name
    done.append(name)


def refused(name, words, call):
    try:
        call()
    except Exception as error:
        text = str(error)
        check(name, words in text and "\n" not in text.strip().splitlines()[0])
        return
    raise AssertionError(name + " was not refused")


refused("a wrong key", "did you mean 'max_split_size_mb'", lambda: integration.install("max_split_mb:64"))
integration.install("max_split_size_mb:64,report_leaks:False")
check("installed", integration.is_installed())
torch.cuda.init()
refused("a second time", "already", integration.install)
check("a device that is not used has zeros", torch.cuda.memory_stats()["active.all.peak"] == 0)

# Statistics, peaks, and what stands on them.
tensor = torch.empty(30 * MIB, dtype=torch.uint8, device="cuda")
check("settings", integration.settings().startswith("compat:torch-") and "max_split_size_mb:64" in integration.settings())
check("allocated", torch.cuda.memory_allocated() == 30 * MIB)
check("max_split_size", integration.memory_stats()["max_split_size"] == 64 * MIB)
del tensor
check("peak", torch.cuda.max_memory_allocated() == 30 * MIB and torch.cuda.memory_allocated() == 0)
torch.cuda.reset_peak_memory_stats()
check("peak after its reset", torch.cuda.max_memory_allocated() == 0)
torch.cuda.reset_accumulated_memory_stats()
again = torch.empty(MIB, dtype=torch.uint8, device="cuda")
check("accumulated after its reset", torch.cuda.memory_stats()["allocation.all.allocated"] == 1)
check("summary", "PyTorch CUDA memory summary" in torch.cuda.memory_summary())
del again
torch.cuda.empty_cache()
check("empty_cache", torch.cuda.memory_reserved() == 0)
any_device = torch.accelerator if hasattr(getattr(torch, "accelerator", None), "memory_reserved") else torch.cuda  # since 2.9
again = torch.empty(30 * MIB, dtype=torch.uint8, device="cuda")
check("torch.accelerator", any_device.memory_allocated() == 30 * MIB)
check("torch.accelerator's peak", any_device.max_memory_reserved() == torch.cuda.max_memory_reserved() >= 30 * MIB)
del again
any_device.empty_cache()
check("torch.accelerator's empty_cache", any_device.memory_reserved() == torch.cuda.memory_reserved() == 0)

# Pools.
with integration.pool() as pool:
    inside = torch.empty(30 * MIB, dtype=torch.uint8, device="cuda")
outside = torch.empty(30 * MIB, dtype=torch.uint8, device="cuda")
check("a pool's segments", [s["total_size"] for s in pool.snapshot()] == [30 * MIB])
check("users", pool.use_count() == 1)
with torch.cuda.use_mem_pool(pool):
    more = torch.empty(30 * MIB, dtype=torch.uint8, device="cuda")
del inside, more
torch.cuda.empty_cache()
check("a pool keeps its memory", torch.cuda.memory_reserved() == 90 * MIB)
del pool
gc.collect()
check("and gives it back", torch.cuda.memory_reserved() == 30 * MIB)
refused("a pool with an allocator", "leave `allocator` out", lambda: torch.cuda.MemPool(allocator=object()))

# Failures: the type, the text, observers, retries.
seen = []
if hasattr(torch._C, "_cuda_attach_out_of_memory_observer"):
    torch._C._cuda_attach_out_of_memory_observer(lambda *words: seen.append(words))
try:
    torch.empty(1 << 50, dtype=torch.uint8, device="cuda")
    raise AssertionError("a petabyte was given")
except torch.cuda.OutOfMemoryError as error:
    check("the error's text", str(error).startswith("CUDA out of memory. GPU 0: ") and "verdict" in str(error))
check("observers", not seen or (seen[0][0] == 0 and seen[0][1] == 1 << 50))
torch.cuda.set_per_process_memory_fraction(0.01)
try:
    torch.empty(1 << 33, dtype=torch.uint8, device="cuda")
    raise AssertionError("the fraction was passed")
except torch.cuda.OutOfMemoryError as error:
    check("the fraction", "limit" in str(error))
if hasattr(torch.cuda, "get_per_process_memory_fraction"):
    check("the fraction is told", torch.cuda.get_per_process_memory_fraction() == 0.01)
torch.cuda.set_per_process_memory_fraction(1.0)
check("failures are counted", torch.cuda.memory_stats()["num_ooms"] >= 1)

# History and snapshots, and PyTorch's viewer of them.
torch.cuda.memory._record_memory_history(None)  # a dry run records from the start on
torch.cuda.memory._record_memory_history(max_entries=100)
kept = [torch.empty((i + 1) * MIB, dtype=torch.uint8, device="cuda") for i in range(8)]
del kept[2:5]
with tempfile.TemporaryDirectory() as folder:
    file = os.path.join(folder, "snapshot.pickle")
    integration.dump_snapshot(file)
    with open(file, "rb") as stored:
        snapshot = pickle.load(stored)
actions = [entry["action"] for entry in snapshot["device_traces"][0]]
check("history", actions.count("alloc") == 8 and actions.count("free_completed") == 3)
live = {block["address"] for segment in snapshot["segments"] for block in segment["blocks"]
        if block["state"] == "active_allocated"}
check("blocks by address", {tensor.data_ptr() for tensor in kept} <= live)
held = sum(segment["total_size"] for segment in snapshot["segments"])
check("segments", held == torch.cuda.memory_reserved())
import torch.cuda._memory_viz as viz

check("the viewer's events", len(viz.trace(snapshot).splitlines()) > len(actions))
check("the viewer's pages", all("<script" in page(snapshot) for page in (viz.trace_plot, viz.segment_plot)))
del kept[:]
check("a history goes on", [entry["action"] for entry in integration.snapshot()["device_traces"][0]].count("alloc") == 8)
torch.cuda.memory._record_memory_history(None)
check("a history that ended", not any(integration.snapshot()["device_traces"]))

# What PyTorch does not let a pluggable allocator do.
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    torch.backends.cudnn.benchmark = True
with warnings.catch_warnings(record=True) as others:
    warnings.simplefilter("always")
    torch.cuda.memory._set_allocator_settings("max_split_size_mb:32")
    torch.cuda.memory.caching_allocator_enable(False)
asked = [str(line.message) for line in others if "is not served with Ashlar" in str(line.message)]
check("what changes nothing is told of", len(asked) == 2 and "caching_allocator_enable" in asked[1])
check("cudnn.benchmark stays off", not torch.backends.cudnn.benchmark and "stays off" in str(told[0].message))
torch.nn.Conv2d(3, 8, 3).cuda()(torch.zeros(1, 3, 32, 32, device="cuda"))
refused("tensors of other processes", "does not yet support", lambda: torch.zeros(4, device="cuda").untyped_storage()._share_cuda_())
sys.stdout.flush()
tell("ashlar_offers", checks=len(done))
