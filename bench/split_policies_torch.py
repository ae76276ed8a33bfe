#!/usr/bin/env python3
"""PyTorch's part of split_policies: its own allocator, in this process, asked what the workloads asked.

    split_policies --requests FOLDER
    split_policies_torch.py [--self-test] FOLDER

Prints a row for each FILE.requests in the form of split_policies' tables. A line of a file is "a ID BYTES STREAM" or
"f ID". Answers are checked: no two live blocks overlap, and nothing is left in the end. The time is Python's too: an
empty loop over the same requests is named beside it. PYTORCH_CUDA_ALLOC_CONF chooses the setting. Exit code 1: a wrong
answer; where torch or a GPU is missing, one line and 0. --self-test asks an allocator of its own instead, which needs neither,
and one that is wrong.
"""

import bisect
import os
import pathlib
import sys
import time

PASSES = 7


def read_requests(path):
    """[(id, bytes, stream)], bytes 0 for a free, and the peak of requested bytes."""
    requests, size_of, live, peak = [], {}, 0, 0
    for number, line in enumerate(path.read_text().splitlines(), 1):
        words = line.split()
        if not all(word.isdecimal() for word in words[1:]):
            sys.exit(f"{path}:{number}: '{line}' has something else than numbers")
        if len(words) == 4 and words[0] == "a":
            block, size, stream = (int(word) for word in words[1:])
            size_of[block] = size
            live += size
            peak = max(peak, live)
            requests.append((block, size, stream))
        elif len(words) == 2 and words[0] == "f" and int(words[1]) in size_of:
            live -= size_of[int(words[1])]
            requests.append((int(words[1]), 0, 0))
        else:
            sys.exit(f"{path}:{number}: '{line}' is neither 'a ID BYTES STREAM' nor 'f ID' of such an ID")
    return requests, peak


class Torch:
    """The two calls, and streams by number: 0 is the current one."""

    def __init__(self, torch):
        self._torch = torch
        self._allocate = torch._C._cuda_cudaCachingAllocator_raw_alloc
        self.free = torch._C._cuda_cudaCachingAllocator_raw_delete
        self._streams = {0: torch.cuda.current_stream()}

    def allocate(self, size, number):
        if number not in self._streams:
            self._streams[number] = self._torch.cuda.Stream()
        return self._allocate(size, self._streams[number].cuda_stream)

    def start(self):
        self._torch.cuda.synchronize()
        self._torch.cuda.empty_cache()
        self._torch.cuda.reset_peak_memory_stats()
        return self.calls()

    def calls(self):
        stats = self._torch.cuda.memory_stats()
        if "num_device_alloc" not in stats:
            return None
        return stats["num_device_alloc"] + stats["num_device_free"]

    def peak(self):
        return self._torch.cuda.memory_stats()["reserved_bytes.all.peak"]


def check(allocator, requests):
    """Every block apart from those that are live; the peak reserved and the driver's calls."""
    before = allocator.start()
    begins, ends, address_of = [], {}, {}
    for block, size, stream in requests:
        if size == 0:
            address = address_of.pop(block)
            begins.pop(bisect.bisect_left(begins, address))
            allocator.free(address)
            continue
        address = allocator.allocate(size, stream)
        at = bisect.bisect_left(begins, address)
        if at < len(begins) and begins[at] < address + size or at > 0 and ends[begins[at - 1]] > address:
            sys.exit("split_policies_torch: wrong answer: two live blocks overlap")
        begins.insert(at, address)
        ends[address] = address + size
        address_of[block] = address
    peak, after = allocator.peak(), allocator.calls()
    for address in address_of.values():
        allocator.free(address)
    return peak, None if after is None else after - before


def seconds(requests, allocate, free):
    address_of = {}
    begin = time.perf_counter()
    for block, size, stream in requests:
        if size == 0:
            free(address_of.pop(block))
        else:
            address_of[block] = allocate(size, stream)
    taken = time.perf_counter() - begin
    for address in address_of.values():
        free(address)
    return taken


def timed(allocator, requests):
    best = None
    for _ in range(PASSES):
        allocator.start()
        taken = seconds(requests, allocator.allocate, allocator.free)
        best = taken if best is None else min(best, taken)
    return best


class Ascending:
    """A new address for every block; with `size_of_all`, one that is too close to the last."""

    def __init__(self, size_of_all=None):
        self._next, self._size_of_all, self.live = 0, size_of_all, set()

    def allocate(self, size, number):
        self._next += size if self._size_of_all is None else self._size_of_all
        self.live.add(self._next - size)
        return self._next - size

    def free(self, address):
        self.live.remove(address)

    def start(self):
        return self.calls()

    def calls(self):
        return 0

    def peak(self):
        return self._next


def self_test(folder):
    files = sorted(pathlib.Path(folder).glob("*.requests"))
    assert files, f"{folder}: no *.requests in it"
    for path in files:
        requests, requested = read_requests(path)
        right = Ascending()
        total, _ = check(right, requests)
        assert total == sum(size for _, size, _ in requests) >= requested > 0 and not right.live, path
        timed(right, requests)
        assert not right.live, path
        try:
            check(Ascending(size_of_all=1), requests)
        except SystemExit as wrong:
            assert "overlap" in str(wrong), wrong
        else:
            raise AssertionError(f"{path}: blocks that overlap were not found")
    print(f"split_policies_torch: self-test passed on {len(files)} files")


def bytes_text(size):
    for power, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if size >= 1 << power:
            return f"{size / (1 << power):.2f} {unit}"
    return f"{size} B"


def main(folder):
    try:
        import torch
    except ImportError as error:
        print(f"PyTorch: skipped, {error}")
        return
    if not torch.cuda.is_available():
        print("PyTorch: skipped, torch sees no GPU")
        return
    torch.cuda.init()
    files = sorted(pathlib.Path(folder).glob("*.requests"))
    if not files:
        sys.exit(f"{folder}: no *.requests in it: split_policies --requests {folder} writes them")
    name = f"PyTorch {torch.__version__} {os.environ.get('PYTORCH_CUDA_ALLOC_CONF', '')}".strip()
    print("| workload | setting | utilisation | peak reserved | driver calls | ns a request (an empty loop's) |")
    print("|---|---|---|---|---|---|")
    allocator = Torch(torch)
    for path in files:
        requests, requested = read_requests(path)
        reserved, calls = check(allocator, requests)
        if torch.cuda.memory_allocated() != 0:
            sys.exit("split_policies_torch: wrong answer: something was not freed")
        a_request = timed(allocator, requests) / len(requests)
        empty = min(seconds(requests, lambda size, stream: size, lambda address: None) for _ in range(PASSES))
        print(f"| {path.stem} | {name} | {100 * requested / reserved:.1f} % | {bytes_text(reserved)} | "
              f"{'unknown' if calls is None else calls} | {1e9 * a_request:.0f} ({1e9 * empty / len(requests):.0f}) |")


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--self-test":
        self_test(sys.argv[2])
    elif len(sys.argv) == 2:
        main(sys.argv[1])
    else:
        sys.exit("split_policies_torch.py [--self-test] FOLDER, which split_policies --requests FOLDER filled")
