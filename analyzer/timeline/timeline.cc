#include "analyzer/timeline/timeline.h"

#include <algorithm>
#include <iterator>

#include "allocator/base/check.h"

namespace ashlar::timeline {
namespace {

StateBlock BlockAfter(const BlockSpan& span, EventIndex event) {
  return {.address = span.address,
          .size_bytes = span.size_bytes,
          .requested_bytes = span.requested_bytes,
          .state = span.IsLiveAfter(event) ? trace::BlockState::kLive : trace::BlockState::kPending,
          .stack = span.stack,
          .size_is_minimum = span.size_is_minimum};
}

StateSegment SegmentAfter(const SegmentSpan& span, EventIndex event) {
  const Extent& extent = span.ExtentAfter(event);
  return {.address = extent.address,
          .size_bytes = extent.size_bytes,
          .stream = span.stream,
          .is_small_pool = span.is_small_pool,
          .is_expandable = span.is_expandable,
          .pool = span.pool,
          .stack = span.stack,
          .blocks = {}};
}

template <typename Range>
void SortByAddress(std::vector<Range>& ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.address < b.address; });
}

}  // namespace

const Extent& SegmentSpan::ExtentAfter(EventIndex event) const {
  ASHLAR_CHECK(ExistsAfter(event));
  const auto next = std::upper_bound(extents.begin(), extents.end(), event,
                                     [](EventIndex e, const Extent& extent) { return e < extent.event; });
  return *std::prev(next);
}

bool Timeline::HasAllocations() const {
  return std::any_of(columns_.events.begin(), columns_.events.end(),
                     [](const trace::Event& event) { return event.action == trace::Action::kAlloc; });
}

const Totals& Timeline::TotalsAfter(EventIndex event) const {
  ASHLAR_CHECK(kBeforeWindow <= event && event < event_count());
  return event == kBeforeWindow ? columns_.start_totals : columns_.totals[static_cast<std::size_t>(event)];
}

State Timeline::StateAt(EventIndex event) const {
  ASHLAR_CHECK(kBeforeWindow <= event && event < event_count());
  State state{.device = device(), .segments = {}};
  for (const SegmentSpan& span : segments()) {
    if (span.ExistsAfter(event)) state.segments.push_back(SegmentAfter(span, event));
  }
  SortByAddress(state.segments);
  std::vector<StateBlock> active;
  for (const BlockSpan& span : blocks()) {
    if (span.IsActiveAfter(event)) active.push_back(BlockAfter(span, event));
  }
  SortByAddress(active);
  auto segment = state.segments.begin();
  for (const StateBlock& block : active) {
    while (segment != state.segments.end() && segment->End() <= block.address) ++segment;
    ASHLAR_CHECK(segment != state.segments.end() && segment->address <= block.address);
    segment->blocks.push_back(block);
  }
  return state;
}

}  // namespace ashlar::timeline
