#!/usr/bin/env python3
"""Real PyTorch programs on a GPU under PyTorch's allocator and under Ashlar's: the same losses, the time of a step, the peaks,
and the smallest memory limit at which each ends.

    bench/torch_allocators.py times                              # one program after the other, alone on the GPU
    bench/torch_allocators.py smallest --jobs 12 --out found.json
    bench/torch_allocators.py run bert native --limit 4294967296 # one run: a line of JSON
    bench/torch_allocators.py smallest bert --plans FOLDER       # also under FOLDER/bert.plan, made by `ashlar plan`

Each run is a process of its own, forked before CUDA is used, so that the imports are paid for once. The limit is
torch.cuda.set_per_process_memory_fraction of this process, so one GPU serves many runs at a time. Each row says whether its
losses are, bit by bit, those of PyTorch's own allocator without a limit. It needs PyTorch, transformers and torchvision, and the
package ashlar_gpu (the wheel, or PYTHONPATH=python with ASHLAR_PREFIX). Without a GPU it says so; `ashlar dry-run --device H200 --
python bench/torch_allocators.py smallest` asks the same over the hollow device, where the times say nothing.
"""

import argparse
import concurrent.futures
import importlib
import json
import os
import select
import signal
import statistics
import sys
import threading
import time
import warnings

from torch_programs import PROGRAMS

ALLOCATORS = {  # name -> (ours, settings)
    "native": (False, ""),
    "expandable": (False, "expandable_segments:True"),
    "ours": (True, ""),
    "ashlar": (True, "policy:ashlar"),
    "planned": (True, "plan:"),
}
SEARCHED = ["native", "expandable", "ashlar"]
PLANS = {}  # program -> the plan that "planned" follows
MIB = 1 << 20
WARM_STEPS = 3
MOST_SECONDS = 240  # of one run
FORKS = threading.Lock()  # one at a time: a child must not keep another's end of a pipe open


def device_calls(torch):
    """Segments, or runs of pages, obtained and returned so far."""
    statistic = torch.cuda.memory_stats()
    return statistic["num_device_alloc"] + statistic["num_device_free"]


def run(name, allocator, limit_bytes):
    """One run in this process, as a dictionary."""
    ours, settings = ALLOCATORS[allocator]
    if allocator == "planned":
        settings += PLANS[name]
    warnings.simplefilter("ignore")
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    import torch

    if ours:
        import ashlar_gpu.torch

        ashlar_gpu.torch.install(settings or None)
    elif settings:
        torch.cuda.memory._set_allocator_settings(settings)
    if not torch.cuda.is_available():
        return {"skipped": "torch sees no GPU"}
    torch.manual_seed(1)
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.backends.cudnn.benchmark = False
    if limit_bytes is not None:
        total = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction(limit_bytes / total)
    losses, milliseconds, failure, calls_warm = [], [], None, None
    torch.cuda.synchronize()
    begin = at = time.perf_counter()
    try:
        for loss in PROGRAMS[name](torch):
            losses.append(loss.item().hex())  # waits for the step
            now = time.perf_counter()
            milliseconds.append(1000 * (now - at))
            if len(losses) == WARM_STEPS:
                calls_warm = device_calls(torch)
            at = time.perf_counter()
    except torch.OutOfMemoryError as error:
        failure = str(error).splitlines()[0]
    statistic = torch.cuda.memory_stats()
    return {"program": name, "allocator": allocator, "limit_bytes": limit_bytes, "failure": failure, "losses": losses,
            "step_ms": statistics.median(milliseconds[WARM_STEPS:] or [0]), "seconds": time.perf_counter() - begin,
            "peak_allocated": statistic["allocated_bytes.all.peak"], "peak_reserved": statistic["reserved_bytes.all.peak"],
            "device_calls": device_calls(torch), "late_calls": device_calls(torch) - (calls_warm or 0),
            "retries": statistic["num_alloc_retries"]}


def imported():
    """What the programs import, before the first fork; CUDA is not used by it."""
    warnings.simplefilter("ignore")  # of forks with threads: CUDA is not used before
    for module in ("torch", "transformers", "transformers.models.bert.modeling_bert", "transformers.models.gpt2.modeling_gpt2",
                   "transformers.models.llama.modeling_llama", "torchvision", "ashlar_gpu.torch"):
        importlib.import_module(module)


def child(name, allocator, limit_bytes=None):
    """run() in a forked process; what went wrong is {"error": text}."""
    with FORKS:
        reads, writes = os.pipe()
        pid = os.fork()
        if pid == 0:
            answer = {"error": "no answer"}
            try:
                answer = run(name, allocator, limit_bytes)
            except BaseException as error:  # the child ends here whatever happened
                answer = {"error": f"{type(error).__name__}: {str(error)[:300]}"}
            finally:
                with os.fdopen(writes, "w") as out:
                    out.write(json.dumps(answer))
                os._exit(0)
        os.close(writes)
    text, until = b"", time.monotonic() + MOST_SECONDS
    with os.fdopen(reads, "rb", buffering=0) as answer:
        while select.select([answer], [], [], max(0.0, until - time.monotonic()))[0]:
            part = answer.read(1 << 16)
            if not part:
                break
            text += part
        else:
            os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    try:
        return json.loads(text)
    except ValueError:
        return {"error": f"the process ended with status {status} and no answer"}


def times(names, rounds):
    """Each program alone on the GPU under each allocator, in turn; the fastest of the rounds' medians."""
    rows = []
    for name in names:
        found = {}
        for _ in range(rounds):
            for allocator in ALLOCATORS if name in PLANS else [*ALLOCATORS][:-1]:
                found.setdefault(allocator, []).append(child(name, allocator))
        bad = [one for runs in found.values() for one in runs if "step_ms" not in one]
        if bad:
            print(f"{name}: {bad[0].get('skipped') or bad[0].get('error')}", flush=True)
            continue
        first = found["native"][0]
        for allocator, runs in found.items():
            best = min(runs, key=lambda one: one["step_ms"])
            same = all(one["losses"] == first["losses"] for one in runs)
            rows.append({**best, "same_losses": same, "losses": None, "seconds": min(one["seconds"] for one in runs)})
            print(f"{name:20s} {allocator:11s} step {best['step_ms']:8.2f} ms  whole {rows[-1]['seconds']:6.2f} s  allocated "
                  f"{best['peak_allocated'] / MIB:8.0f}  reserved {best['peak_reserved'] / MIB:8.0f} MiB  device calls "
                  f"{best['device_calls']:5d}, after step {WARM_STEPS} {best['late_calls']:4d}  retries {best['retries']:3d}  losses {'equal' if same else 'DIFFER'}", flush=True)
    return rows


def smallest(name, allocator, ample):
    """The least limit at which it ends, to a quarter of a per cent of the peak; the most that was seen to fail."""
    fails, ends = ample[name]["native"]["peak_allocated"] - 1, None
    at = max(run["peak_reserved"] for run in ample[name].values()) + 2 * MIB
    step = max(2 * MIB, ample[name]["native"]["peak_allocated"] // 400)
    runs, best = 0, None
    while True:
        runs += 1
        done = child(name, allocator, at)
        if "step_ms" not in done:
            return {"program": name, "allocator": allocator, "error": done.get("error")}
        if done["failure"] is None:
            ends, best = at, done
        else:
            fails = at
        if ends is None:
            at += at // 8  # the ample run had less to hold than this one
            if runs > 6:
                return {"program": name, "allocator": allocator, "error": f"fails at {at}: {done['failure']}"}
            continue
        if ends - fails <= step:
            break
        at = (ends + fails) // 2
    same = best["losses"] == ample[name]["native"]["losses"]
    return {**best, "losses": None, "same_losses": same, "smallest_bytes": ends, "fails_bytes": fails, "runs": runs}


def all_smallest(names, jobs):
    rows = []
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        begun = {(name, allocator): pool.submit(child, name, allocator) for name in names for allocator in SEARCHED}
        ample = {}
        for (name, allocator), run_of in begun.items():
            ample.setdefault(name, {})[allocator] = run_of.result()
        for name in list(ample):
            bad = [one for one in ample[name].values() if "step_ms" not in one or one["failure"]]
            if bad:
                print(f"{name}: {bad[0].get('skipped') or bad[0].get('error') or bad[0].get('failure')}", flush=True)
                del ample[name]
        begun = [(name, pool.submit(smallest, name, allocator, ample)) for name in ample for allocator in SEARCHED]
        for name, run_of in begun:
            row, peak = run_of.result(), ample[name]["native"]["peak_allocated"]
            rows.append({**row, "ample_peak": peak})
            if "error" in row:
                print(f"{name:20s} {row['allocator']:11s} {row['error']}", flush=True)
                continue
            print(f"{name:20s} {row['allocator']:11s} peak {peak / MIB:8.0f} MiB  smallest {row['smallest_bytes'] / MIB:8.0f} = "
                  f"{row['smallest_bytes'] / peak:.4f}  fails at {row['fails_bytes'] / peak:.4f}  step {row['step_ms']:8.2f} ms  "
                  f"losses {'equal' if row['same_losses'] else 'DIFFER'}", flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("times", "smallest", "run"))
    parser.add_argument("of", nargs="*", help="programs; for run: a program and an allocator")
    parser.add_argument("--limit", type=int, metavar="BYTES", help="of run")
    parser.add_argument("--rounds", type=int, default=2, help="of times")
    parser.add_argument("--jobs", type=int, default=4, help="of smallest: processes on the GPU at a time")
    parser.add_argument("--plans", metavar="FOLDER", help="of PROGRAM.plan: what the allocator planned follows")
    parser.add_argument("--out", metavar="FILE", help="the rows as JSON")
    asked = parser.parse_args()
    if asked.plans:
        PLANS.update((name, f"{os.path.abspath(asked.plans)}/{name}.plan") for name in asked.of or PROGRAMS if name in PROGRAMS)
        SEARCHED.append("planned")
    elif "planned" in asked.of:
        parser.error("planned wants --plans")
    if asked.what == "run":
        if len(asked.of) != 2 or asked.of[0] not in PROGRAMS or asked.of[1] not in ALLOCATORS:
            parser.error(f"run takes one of {', '.join(PROGRAMS)} and one of {', '.join(ALLOCATORS)}")
        print(json.dumps(run(*asked.of, asked.limit)))
        return
    unknown = [name for name in asked.of if name not in PROGRAMS]
    if unknown:
        parser.error(f"{unknown[0]} is no program: {', '.join(PROGRAMS)}")
    names = asked.of or list(PROGRAMS)
    imported()
    rows = times(names, asked.rounds) if asked.what == "times" else all_smallest(names, asked.jobs)
    if asked.out:
        with open(asked.out, "w", encoding="utf-8") as out:
            json.dump(rows, out, indent=1)


if __name__ == "__main__":
    main()
