"""What C++ is told by PyTorch's allocator, call by call: attachAllocatorTraceTracker, attachOutOfMemoryObserver,
FreeMemoryCallback and cacheInfo of c10::cuda::CUDACachingAllocator, which Python does not have."""

import ctypes
import sys

import compiled
import torch
from tell import tell

MIB = 1 << 20
CLIENT = """
#include <c10/cuda/CUDACachingAllocator.h>
#include <vector>

namespace allocator = c10::cuda::CUDACachingAllocator;
using Row = std::vector<long long>;

std::vector<Row> rows;
void* held = nullptr;

class GivesUpWhatIsHeld : public c10::FreeMemoryCallback {
 public:
  bool Execute() override {
    rows.push_back({2, held != nullptr});
    if (held == nullptr) return false;
    allocator::raw_delete(held);
    held = nullptr;
    return true;
  }
};
namespace c10 {
REGISTER_FREE_MEMORY_CALLBACK(gives_up_what_is_held, ::GivesUpWhatIsHeld)
}

extern "C" {
void attach() {
  allocator::attachAllocatorTraceTracker([](const c10::CachingDeviceAllocator::TraceEntry& entry) {
    rows.push_back({0, entry.action_, entry.device_, static_cast<long long>(entry.addr_), static_cast<long long>(entry.size_),
                    entry.stream_ != nullptr, static_cast<long long>(entry.mempool_.first),
                    static_cast<long long>(entry.mempool_.second), static_cast<long long>(entry.user_metadata_.size())});
  });
  allocator::attachOutOfMemoryObserver([](long long device, size_t asked, size_t total, size_t free) {
    rows.push_back({1, device, static_cast<long long>(asked), static_cast<long long>(total), static_cast<long long>(free)});
  });
}
void hold(size_t bytes) { held = allocator::raw_alloc(bytes); }
size_t largest(size_t at_least) {
  allocator::cacheInfo(0, &at_least);
  return at_least;
}
size_t count() { return rows.size(); }
size_t width(size_t row) { return rows[row].size(); }
long long cell(size_t row, size_t column) { return rows[row][column]; }
}
"""
ACTIONS = ("alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map", "segment_unmap",
           "snapshot", "oom", "annotate")
KINDS = ("trace", "observer", "callback")
HAS_ADDRESS = ACTIONS[:7] + ACTIONS[9:]


def made_client():
    client = compiled.load(CLIENT)
    for name in ("largest", "count", "width"):
        getattr(client, name).restype = ctypes.c_size_t
    client.cell.restype = ctypes.c_longlong
    for name in ("hold", "largest", "width"):
        getattr(client, name).argtypes = [ctypes.c_size_t]
    client.cell.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
    return client


class Listener:
    """What was told since the last look; an address is the number of its first mention."""

    def __init__(self, client):
        self.client = client
        self.seen, self.numbers = 0, {}
        self.counts = dict.fromkeys(KINDS, 0)

    def number(self, address):
        return self.numbers.setdefault(address, len(self.numbers))

    def news(self):
        out = []
        for row in range(self.seen, self.client.count()):
            kind, *cells = (self.client.cell(row, column) for column in range(self.client.width(row)))
            if kind == 0:
                action = ACTIONS[cells[0]]
                cells = [action, cells[1], self.number(cells[2]) if action in HAS_ADDRESS else cells[2], *cells[3:]]
            self.counts[KINDS[kind]] += 1
            out.append([KINDS[kind], *cells])
        self.seen = self.client.count()
        return out


def block(mib):
    return torch.empty(int(mib * MIB), dtype=torch.uint8, device="cuda")


def come_and_go(client):
    kept = [block(30), block(3), block(0.001)]
    yield client.largest(0), client.largest(1 << 50)
    del kept[0]
    yield client.largest(0), client.largest(1)
    kept.append(block(12))
    torch.cuda.empty_cache()
    yield client.largest(1)


def across_streams(client):
    side = torch.cuda.Stream()
    kept = block(30)
    with torch.cuda.stream(side):
        kept.add_(1)
    kept.record_stream(side)
    del kept
    yield client.largest(1)
    torch.cuda.synchronize()
    more = block(30)
    yield more.numel()


def in_a_pool(client):
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        inside = block(30)
    yield client.largest(1)
    del inside
    yield client.largest(1)
    del pool
    torch.cuda.empty_cache()
    graph, static = torch.cuda.CUDAGraph(), block(4)
    with torch.cuda.graph(graph):
        out = static + 1
    graph.replay()
    yield out.numel()


def out_of_memory(client):
    """Once with what a callback can give up, and once without."""
    total = torch.cuda.mem_get_info()[1]
    torch.cuda.set_per_process_memory_fraction(200 * MIB / total)
    try:
        client.hold(100 * MIB)
        yield block(150).numel()
        for size in (300, 250):
            try:
                block(size)
                yield "served"
            except torch.OutOfMemoryError:
                yield "out of memory"
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    yield client.largest(1)


def looks(client):
    kept = block(30)
    torch.cuda.memory._record_memory_history(max_entries=100)
    torch.cuda.memory._set_memory_metadata("named")
    more = block(3)
    torch.cuda.memory._set_memory_metadata("")
    torch.cuda.memory._annotate_tensor(kept, "the cache")
    torch.cuda.memory._snapshot()
    torch.cuda.memory._record_memory_history(None)
    yield more.numel()


def pages_of_sleep(listener):
    """Who has registered pages with a network, as NCCL does by a tracker, learns that they go at a sleep and come at a wake. Of ours
    alone: python torch_told.py sleep."""
    ours = sys.modules["ashlar_gpu.torch"]
    with ours.tag("cache"):
        cache = block(30)
    listener.news()
    ours.sleep("cache")
    gone = [row[4] for row in listener.news() if row[:2] == ["trace", "segment_unmap"]]
    ours.wake("cache")
    back = [row[4] for row in listener.news() if row[:2] == ["trace", "segment_map"]]
    assert gone == back and sum(gone) >= cache.numel(), (gone, back)
    return len(gone)


if __name__ == "__main__":
    if "sleep" in sys.argv[1:]:
        import ashlar_gpu.torch

        ashlar_gpu.torch.install(interface="native")  # the wrapper of plug-ins takes no tracker
    torch.cuda.init()
    client = made_client()
    client.attach()
    listener, answers = Listener(client), {}
    if "sleep" in sys.argv[1:]:
        tell("torch_told sleep", pages=pages_of_sleep(listener))
        sys.exit()
    for scene in (come_and_go, across_streams, in_a_pool, out_of_memory, looks):
        answers[scene.__name__] = [(answer, listener.news()) for answer in scene(client)]
        torch.cuda.empty_cache()
        answers[scene.__name__ + " at the end"] = listener.news()
    assert all(listener.counts.values()), listener.counts
    tell("torch_told", answers=answers, counts=listener.counts)
