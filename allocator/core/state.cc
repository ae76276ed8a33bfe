#include "allocator/core/state.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/policy/conf_split.h"
#include "allocator/trace/snapshot.h"

namespace ashlar::core {
namespace {

using policy::BlockUse;

trace::SnapshotBlock ToSnapshotBlock(const policy::Block& block) {
  trace::SnapshotBlock out;
  out.address = block.address;
  out.size_bytes = block.size_bytes;
  if (block.state != BlockUse::kFree) out.requested_bytes = block.requested_bytes;
  out.state = block.state == BlockUse::kLive      ? trace::BlockState::kLive
              : block.state == BlockUse::kPending ? trace::BlockState::kPending
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
    if (block->state == BlockUse::kUnmapped) {
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

namespace {

policy::Block* LiveBlockAt(const policy::Segment& segment, std::uint64_t address) {
  policy::Block* block = segment.first;
  while (block != nullptr && block->End() <= address) block = block->next;
  return block != nullptr && block->state == BlockUse::kLive ? block : nullptr;
}

}  // namespace

std::optional<BlockPlace> PlaceOf(const policy::Heap& heap, std::uint64_t address) {
  const policy::Segment* segment = SegmentAt(heap, address);
  const policy::Block* block = segment == nullptr ? nullptr : segment->first;
  const policy::Block* run = nullptr;  // where the mapped range begins
  for (; block != nullptr && block->End() <= address; block = block->next) {
    if (block->state == BlockUse::kUnmapped) {
      run = nullptr;
    } else if (run == nullptr) {
      run = block;
    }
  }
  if (block == nullptr || block->state != BlockUse::kLive) return std::nullopt;
  if (run == nullptr) run = block;
  std::uint64_t end = block->End();
  for (const policy::Block* next = block->next; next != nullptr && next->state != BlockUse::kUnmapped;
       next = next->next)
    end = next->End();
  return BlockPlace{block->address, block->size_bytes, block->requested_bytes, run->address, end - run->address};
}

std::optional<PageOfBlock> PageOf(const policy::Heap& heap, std::uint64_t address) {
  const policy::Segment* segment = SegmentAt(heap, address);
  if (segment == nullptr || !segment->is_expandable || segment->lane->pool->pair->is_asleep) return std::nullopt;
  policy::Block* const block = LiveBlockAt(*segment, address);
  if (block == nullptr) return std::nullopt;
  const auto after = segment->large_pages.upper_bound(address);
  if (after != segment->large_pages.begin()) {
    const auto& [at, size_bytes] = *std::prev(after);
    if (address - at < size_bytes) return PageOfBlock{{at, size_bytes}, block};
  }
  const std::uint64_t offset = (address - segment->address) / segment->page_bytes * segment->page_bytes;
  return PageOfBlock{{segment->address + offset, segment->page_bytes}, block};
}

std::vector<trace::SnapshotSegment> SegmentsOf(const policy::Heap& heap) {
  std::vector<trace::SnapshotSegment> out;
  for (const auto& [address, segment] : heap.segments()) AppendMappedRanges(*segment, out);
  return out;
}

std::vector<trace::SnapshotSegment> AwakeSegmentsOf(const policy::Heap& heap) {
  std::vector<trace::SnapshotSegment> out;
  for (const auto& [address, segment] : heap.segments()) {
    if (!segment->lane->pool->pair->is_asleep) AppendMappedRanges(*segment, out);
  }
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
    const bool is_whole_free = segment->first->state == BlockUse::kFree && !segment->first->IsSplit();
    if (HasAges(heap) && is_whole_free && segment->lane->pool == &collected) {
      trace::SetFreeAge(out.segments.back().blocks.back(), collected.clock - segment->first->freed_at);
    }
  }
  out.reservations = ReservationsOf(heap);
  out.large_pages = LargePagesOf(heap);
  return out;
}

namespace {

const char* Printed(bool value) { return value ? "True" : "False"; }

// "1:0,2:4,...": the first MiB of an interval and its divisions.
std::string Divisions(const policy::Options& options) {
  std::string out;
  for (std::size_t i = 0; i < options.roundup_power2_divisions.size(); ++i) {
    absl::StrAppend(&out, i == 0 ? "" : ",", std::uint64_t{1} << i, ":", options.roundup_power2_divisions[i]);
  }
  return out;
}

trace::RecordedSettings SettingsOf(const policy::Options& options) {
  trace::RecordedSettings out;
  out.conf = policy::WithoutKey(options.conf, "plan");  // a replay needs no file: events say what it placed
  if (options.max_split_size_bytes != policy::kUnlimited) out.max_split_size_bytes = options.max_split_size_bytes;
  out.garbage_collection_threshold = options.garbage_collection_threshold;
  out.expandable_segments = options.expandable_segments;
  out.values = {
      {"PYTORCH_CUDA_ALLOC_CONF", out.conf},
      {"max_split_size", out.max_split_size_bytes.has_value() ? absl::StrCat(*out.max_split_size_bytes) : "-1"},
      {"garbage_collection_threshold", absl::StrFormat("%#.15g", options.garbage_collection_threshold)},
      {"expandable_segments", Printed(options.expandable_segments)},
      {"roundup_power2_divisions", Divisions(options)},
      {"large_segment_size", absl::StrCat(options.large_segment_bytes)},
      {"max_non_split_rounding_size", absl::StrCat(options.max_non_split_rounding_bytes)},
      {"throw_on_cudamalloc_oom", Printed(options.throw_on_cudamalloc_oom)},
  };
  return out;
}

}  // namespace

trace::Snapshot RecordedHeadOf(const policy::Options& options, const Limits& limits, int device) {
  trace::Snapshot out;
  out.device_traces.resize(static_cast<std::size_t>(device) + 1);
  out.settings = SettingsOf(options);
  out.traits.has_time = true;
  out.traits.has_stacks = true;
  out.traits.has_requested_bytes = true;
  out.traits.has_pool_ids = true;
  out.traits.has_settings = true;
  out.traits.generation = "our own";
  out.recording.emplace();
  out.recording->compat = std::string(policy::CompatName(options.compat));
  out.recording->free_order = std::string(policy::FreeOrderName(options.free_order));
  out.recording->device = device;
  out.recording->device_total_bytes = limits.total_bytes();
  out.recording->limit_bytes = limits.bytes();
  out.recording->has_calls = true;
  return out;
}

trace::Snapshot RecordedStateOf(const Ledger& ledger, const Limits& limits,
                                std::vector<trace::SnapshotSegment> segments) {
  trace::Snapshot state = RecordedHeadOf(ledger.options(), limits, 0);
  state.segments = std::move(segments);
  state.recording->reservations = ReservationsOf(ledger.heap());
  state.recording->is_complete = true;
  if (ledger.sink() != nullptr) ledger.sink()->NameBlocks(state);
  return state;
}

}  // namespace ashlar::core
