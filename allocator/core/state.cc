#include "allocator/core/state.h"

#include <algorithm>
#include <iterator>

#include "allocator/trace/free_age.h"

namespace ashlar::core {
namespace {

using policy::BlockState;

trace::SnapshotBlock ToSnapshotBlock(const policy::Block& block) {
  trace::SnapshotBlock out;
  out.address = block.address;
  out.size_bytes = block.size_bytes;
  if (block.state != BlockState::kFree) out.requested_bytes = block.requested_bytes;
  out.state = block.state == BlockState::kLive      ? trace::BlockState::kLive
              : block.state == BlockState::kPending ? trace::BlockState::kPending
                                                    : trace::BlockState::kFree;
  return out;
}

// In the order in which they were obtained.
std::vector<const policy::Segment*> ByAge(const policy::Heap& heap, bool expandable_only = false) {
  std::vector<const policy::Segment*> out;
  for (const auto& [address, segment] : heap.segments()) {
    if (segment->is_expandable || !expandable_only) out.push_back(segment.get());
  }
  std::stable_sort(out.begin(), out.end(), [](const auto* a, const auto* b) { return a->rank < b->rank; });
  return out;
}

// A snapshot's segment is a maximal mapped range: one for an ordinary segment, any number for an expandable one.
void AppendMappedRanges(const policy::Segment& segment, std::vector<trace::SnapshotSegment>& out) {
  bool is_open = false;
  for (const policy::Block* block = segment.first; block != nullptr; block = block->next) {
    if (block->state == BlockState::kUnmapped) {
      is_open = false;
      continue;
    }
    if (!is_open) {
      trace::SnapshotSegment& range = out.emplace_back();
      range.address = block->address;
      range.stream = segment.lane->stream;
      range.is_small_pool = segment.lane->pool->is_small;
      range.is_expandable = segment.is_expandable;
      range.pool = segment.lane->pool->id;
      is_open = true;
    }
    out.back().size_bytes += block->size_bytes;
    out.back().blocks.push_back(ToSnapshotBlock(*block));
  }
}

}  // namespace

const policy::Segment* SegmentAt(const policy::Heap& heap, std::uint64_t address) {
  const auto after = heap.segments().upper_bound(address);
  if (after == heap.segments().begin()) return nullptr;
  const policy::Segment& segment = *std::prev(after)->second;
  return address - segment.address < segment.size_bytes ? &segment : nullptr;
}

std::optional<BlockPlace> PlaceOf(const policy::Heap& heap, std::uint64_t address) {
  const policy::Segment* segment = SegmentAt(heap, address);
  const policy::Block* block = segment == nullptr ? nullptr : segment->first;
  const policy::Block* run = nullptr;  // where the mapped range begins
  for (; block != nullptr && block->End() <= address; block = block->next) {
    if (block->state == BlockState::kUnmapped) {
      run = nullptr;
    } else if (run == nullptr) {
      run = block;
    }
  }
  if (block == nullptr || block->state != BlockState::kLive) return std::nullopt;
  if (run == nullptr) run = block;
  std::uint64_t end = block->End();
  for (const policy::Block* next = block->next; next != nullptr && next->state != BlockState::kUnmapped;
       next = next->next)
    end = next->End();
  return BlockPlace{block->address, block->size_bytes, block->requested_bytes, run->address, end - run->address};
}

std::vector<trace::SnapshotSegment> SegmentsOf(const policy::Heap& heap) {
  std::vector<trace::SnapshotSegment> out;
  for (const auto& [address, segment] : heap.segments()) AppendMappedRanges(*segment, out);
  return out;
}

std::vector<trace::ReservedRange> ReservationsOf(const policy::Heap& heap) {
  std::vector<trace::ReservedRange> out;
  for (const policy::Segment* segment : ByAge(heap, /*expandable_only=*/true)) {
    const policy::Pool& pool = *segment->lane->pool;
    out.push_back({segment->address, segment->size_bytes,
                   trace::ReservedRange::Lane{segment->lane->stream, pool.is_small, pool.id}});
  }
  return out;
}

std::vector<trace::LargePage> LargePagesOf(const policy::Heap& heap) {
  std::vector<trace::LargePage> out;
  for (const auto& [address, segment] : heap.segments()) {
    for (const auto& [at, size_bytes] : segment->large_pages) out.push_back({at, size_bytes});
  }
  return out;
}

bool HasAges(const policy::Heap& heap) {
  return heap.options().garbage_collection_threshold > 0 || heap.default_pair().large.clock > 0;
}

trace::RecordedStart StartOf(const policy::Heap& heap) {
  trace::RecordedStart out;
  out.has_segments = true;
  const policy::Pool& collected = heap.default_pair().large;
  for (const policy::Segment* segment : ByAge(heap)) {
    AppendMappedRanges(*segment, out.segments);
    const bool is_whole_free = segment->first->state == BlockState::kFree && !segment->first->IsSplit();
    if (HasAges(heap) && is_whole_free && segment->lane->pool == &collected) {
      trace::SetFreeAge(out.segments.back().blocks.back(), collected.clock - segment->first->freed_at);
    }
  }
  out.reservations = ReservationsOf(heap);
  out.large_pages = LargePagesOf(heap);
  return out;
}

}  // namespace ashlar::core
