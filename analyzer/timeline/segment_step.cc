#include "analyzer/timeline/segment_step.h"

#include "allocator/base/check.h"
#include "allocator/base/torch_sizes.h"

namespace ashlar::timeline {
namespace {

SegmentRange Piece(const trace::Event& event, const EventFacts& facts, std::uint32_t id) {
  return {.address = event.address,
          .size_bytes = event.size_bytes,
          .stream = event.stream,
          .is_small_pool = facts.is_small_pool.value_or(event.size_bytes <= kSmallSegmentBytes),
          .is_expandable = event.action == trace::Action::kSegmentMap,
          .pool = facts.pool.value_or(event.pool.value_or(PoolId{})),
          .stack = event.stack,
          .id = id};
}

bool AreAlike(const SegmentRange* neighbour, const SegmentRange& piece) {
  return neighbour != nullptr && neighbour->is_expandable && neighbour->stream == piece.stream &&
         neighbour->is_small_pool == piece.is_small_pool && neighbour->pool == piece.pool;
}

}  // namespace

bool IsSegmentEvent(trace::Action action) {
  return action == trace::Action::kSegmentAlloc || action == trace::Action::kSegmentFree ||
         action == trace::Action::kSegmentMap || action == trace::Action::kSegmentUnmap;
}

absl::Status ApplySegmentEvent(const trace::Event& event, const EventFacts& facts, std::uint32_t new_id,
                               Occupancy& picture) {
  const SegmentRange piece = Piece(event, facts, new_id);
  switch (event.action) {
    case trace::Action::kSegmentAlloc:
      return picture.AddSegment(piece);
    case trace::Action::kSegmentFree:
      return picture.RemoveSegment(event.address, event.size_bytes);
    case trace::Action::kSegmentMap:
      return picture.Map(piece, facts.joins_left.value_or(AreAlike(picture.SegmentEndingAt(piece.address), piece)),
                         facts.joins_right.value_or(AreAlike(picture.SegmentStartingAt(piece.End()), piece)));
    case trace::Action::kSegmentUnmap:
      return picture.Unmap(event.address, event.size_bytes, new_id);
    default:
      ASHLAR_CHECK(false);
  }
  return absl::OkStatus();
}

}  // namespace ashlar::timeline
