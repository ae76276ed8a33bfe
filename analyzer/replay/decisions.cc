#include "analyzer/replay/decisions.h"

#include <algorithm>
#include <iterator>

#include "allocator/core/inspect.h"

namespace ashlar::replay {
namespace {

using trace::Action;
using trace::Event;

void AddPool(const policy::Heap& heap, const policy::Pool& pool, std::vector<SegmentDecision>& out) {
  for (const policy::Block* block : heap.WholeFree(pool)) {
    out.emplace_back(Action::kSegmentFree, block->address, block->size_bytes);
  }
  for (const policy::Block* block : policy::Heap::FreeExpandable(pool)) {
    for (const policy::PageRun& run : heap.PagesToReturn(block)) {
      out.emplace_back(Action::kSegmentUnmap, run.range.address, run.range.size_bytes);
    }
  }
}

const policy::Segment* SegmentAround(std::uint64_t address, const policy::Heap& heap) {
  const auto it = heap.segments().upper_bound(address);
  if (it == heap.segments().begin()) return nullptr;
  const policy::Segment& segment = *std::prev(it)->second;
  return address - segment.address < segment.size_bytes ? &segment : nullptr;
}

// Whether the victims are the first segments released, in order.
bool IsBeginning(const std::vector<policy::Block*>& victims, absl::Span<const Event> released) {
  return victims.size() <= released.size() && std::equal(victims.begin(), victims.end(), released.begin(),
                                                         [](const policy::Block* block, const Event& event) {
                                                           return event.action == Action::kSegmentFree &&
                                                                  event.address == block->address;
                                                         });
}

}  // namespace

bool IsSegmentEvent(Action action) {
  return action == Action::kSegmentAlloc || action == Action::kSegmentMap || IsRelease(action);
}

bool IsRelease(Action action) { return action == Action::kSegmentFree || action == Action::kSegmentUnmap; }

SegmentDecision DecisionOf(const Event& event) { return {event.action, event.address, event.size_bytes}; }

void CompareDecisions(std::vector<SegmentDecision> recorded, std::vector<SegmentDecision> replayed,
                      Fidelity& fidelity) {
  std::sort(recorded.begin(), recorded.end());
  std::sort(replayed.begin(), replayed.end());
  std::vector<SegmentDecision> same;
  std::set_intersection(recorded.begin(), recorded.end(), replayed.begin(), replayed.end(), std::back_inserter(same));
  fidelity.segments_matched += same.size();
  fidelity.segments_total += recorded.size() + replayed.size() - same.size();
}

void ReleaseUsedPools(absl::Span<const Event> released, PoolId asking, core::CachingAllocator& allocator) {
  const policy::Heap& heap = core::Inspection(allocator).heap();
  for (const Event& event : released) {
    const policy::Segment* segment = SegmentAround(event.address, heap);
    if (segment == nullptr) continue;
    const PoolId pool = segment->lane->pool->id;
    if (pool == asking && event.size_bytes >= allocator.options().max_split_size_bytes) continue;
    const auto pair = heap.private_pairs().find(pool);
    if (pair != heap.private_pairs().end() && pair->second->use_count > 0) allocator.ReleasePool(pool);
  }
}

bool IsWholeCache(absl::Span<const Event> released, const core::CachingAllocator& allocator) {
  if (allocator.pending_event_count() > 0) return false;  // their frees would be completed
  const policy::Heap& heap = core::Inspection(allocator).heap();
  std::vector<SegmentDecision> whole;
  AddPool(heap, heap.default_pair().large, whole);
  AddPool(heap, heap.default_pair().small, whole);
  for (const auto& [id, pair] : heap.private_pairs()) {
    if (pair->use_count > 0) continue;
    AddPool(heap, pair->small, whole);
    AddPool(heap, pair->large, whole);
  }
  std::vector<SegmentDecision> recorded;
  for (const Event& event : released) recorded.push_back(DecisionOf(event));
  std::sort(whole.begin(), whole.end());
  std::sort(recorded.begin(), recorded.end());
  return whole == recorded;
}

std::uint64_t GarbageBytes(absl::Span<const Event> released, const core::CachingAllocator& allocator) {
  if (allocator.options().garbage_collection_threshold <= 0) return 0;
  std::uint64_t best = 0;
  std::uint64_t bytes = 0;
  std::size_t collected = 0;
  for (std::size_t i = 0; i < released.size(); ++i) {
    bytes += released[i].size_bytes;
    if (i + 1 <= collected) continue;
    const std::vector<policy::Block*> victims = core::Inspection(allocator).heap().GarbageVictims(bytes);
    if (!IsBeginning(victims, released)) break;
    collected = victims.size();
    best = bytes;
  }
  return best;
}

}  // namespace ashlar::replay
