#include "analyzer/timeline/timeline.h"

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
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
  const SegmentExtent& extent = span.ExtentAfter(event);
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

const SegmentExtent& SegmentSpan::ExtentAfter(EventIndex event) const {
  ASHLAR_CHECK(ExistsAfter(event));
  const auto next = std::upper_bound(extents.begin(), extents.end(), event,
                                     [](EventIndex e, const SegmentExtent& extent) { return e < extent.event; });
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

// Timeline::Validate: the columns against their spans, recomputed in the most obvious way. Shares no code with the
// makers.

namespace {

using trace::Action;

class Validator {
 public:
  explicit Validator(const Timeline& timeline) : timeline_(timeline) {}

  absl::Status Run() {
    if (timeline_.totals().size() != timeline_.events().size()) {
      return absl::InternalError("timeline: as many sums as events are needed");
    }
    CollectChanges();
    CheckSpans();
    for (EventIndex e = kBeforeWindow; e < timeline_.event_count() && status_.ok(); ++e) Walk(e);
    CheckPeak("allocated", timeline_.allocated_peak(), &Totals::allocated_bytes);
    CheckPeak("active", timeline_.active_peak(), &Totals::active_bytes);
    CheckPeak("reserved", timeline_.reserved_peak(), &Totals::reserved_bytes);
    CheckOoms();
    return status_;
  }

 private:
  // In the order in which the changes of one event apply.
  enum class Kind : std::uint8_t { kComplete, kEndSegment, kEndExtent, kBeginExtent, kAllocate, kRequest };
  struct Change {
    EventIndex event = kNever;
    Kind kind = Kind::kComplete;
    std::size_t index = 0;  // of the span
    auto operator<=>(const Change&) const = default;
  };

  // The first failure stays.
  void Wrong(EventIndex event, absl::string_view what) {
    status_.Update(absl::InternalError(absl::StrCat("timeline, event ", event, ": ", what)));
  }

  void CollectChanges() {
    for (std::size_t i = 0; i < timeline_.blocks().size(); ++i) {
      const BlockSpan& block = timeline_.blocks()[i];
      changes_.push_back({block.alloc_event, Kind::kAllocate, i});
      changes_.push_back({block.free_requested_event, Kind::kRequest, i});
      changes_.push_back({block.free_completed_event, Kind::kComplete, i});
    }
    for (std::size_t i = 0; i < timeline_.segments().size(); ++i) {
      const SegmentSpan& segment = timeline_.segments()[i];
      for (const SegmentExtent& extent : segment.extents) changes_.push_back({extent.event, Kind::kEndExtent, i});
      for (const SegmentExtent& extent : segment.extents) changes_.push_back({extent.event, Kind::kBeginExtent, i});
      changes_.push_back({segment.end_event, Kind::kEndSegment, i});
    }
    std::sort(changes_.begin(), changes_.end());
  }

  bool IsEventOf(EventIndex index, Action action, std::uint64_t address) const {
    if (index == kBeforeWindow || index == kNever) return true;
    if (index < 0 || index >= timeline_.event_count()) return false;
    const trace::Event& event = timeline_.events()[static_cast<std::size_t>(index)];
    return event.action == action && event.address == address;
  }

  void CheckSpans() {
    for (const BlockSpan& block : timeline_.blocks()) {
      const bool is_ordered = block.alloc_event <= block.free_requested_event &&
                              block.free_requested_event <= block.free_completed_event &&
                              block.alloc_event < block.free_completed_event && block.alloc_event != kNever;
      const bool is_named = IsEventOf(block.alloc_event, Action::kAlloc, block.address) &&
                            IsEventOf(block.free_requested_event, Action::kFreeRequested, block.address) &&
                            IsEventOf(block.free_completed_event, Action::kFreeCompleted, block.address);
      if (!is_ordered || !is_named) Wrong(block.alloc_event, "a block's events are not its own");
      if (block.size_bytes < block.requested_bytes.value_or(0)) Wrong(block.alloc_event, "a block below its request");
      if (block.segment >= timeline_.segments().size()) Wrong(block.alloc_event, "a block of no segment");
    }
    for (const SegmentSpan& segment : timeline_.segments()) {
      for (std::size_t i = 1; i < segment.extents.size(); ++i) {
        if (segment.extents[i - 1].event >= segment.extents[i].event)
          Wrong(segment.extents[i].event, "extents unordered");
      }
      if (segment.extents.back().event >= segment.end_event)
        Wrong(segment.end_event, "a segment changes after its end");
    }
  }

  void Walk(EventIndex event) {
    for (; next_change_ < changes_.size() && changes_[next_change_].event == event; ++next_change_) {
      Apply(changes_[next_change_]);
    }
    CheckLost(event);
    if (!(sum_ == timeline_.TotalsAfter(event))) Wrong(event, "the sums are not those of the spans");
  }

  void Apply(const Change& change) {
    switch (change.kind) {
      case Kind::kComplete:
        return Complete(timeline_.blocks()[change.index], change.event);
      case Kind::kEndSegment:
      case Kind::kEndExtent:
        return EndExtent(change.index);
      case Kind::kBeginExtent:
        return BeginExtent(change.index, change.event);
      case Kind::kAllocate:
        return Allocate(timeline_.blocks()[change.index], change.event);
      case Kind::kRequest:
        return Request(timeline_.blocks()[change.index]);
    }
  }

  void Allocate(const BlockSpan& block, EventIndex event) {
    const auto next = blocks_.lower_bound(block.address);
    if (next != blocks_.end() && next->first < block.End()) Wrong(event, "a block overlaps the one above it");
    if (next != blocks_.begin() && std::prev(next)->second > block.address) {
      Wrong(event, "a block overlaps the one below it");
    }
    if (!IsWithinSegment(block.address, block.End())) Wrong(event, "a block outside its segment");
    blocks_[block.address] = block.End();
    sum_.allocated_bytes += block.size_bytes;
    sum_.active_bytes += block.size_bytes;
    sum_.requested_bytes += block.requested_bytes.value_or(0);
  }

  void Request(const BlockSpan& block) {
    sum_.allocated_bytes -= block.size_bytes;
    sum_.requested_bytes -= block.requested_bytes.value_or(0);
  }

  void Complete(const BlockSpan& block, EventIndex event) {
    if (blocks_.erase(block.address) != 1) Wrong(event, "a block is freed that is not there");
    sum_.active_bytes -= block.size_bytes;
  }

  void EndExtent(std::size_t index) {
    const auto it = extents_.find(index);
    if (it == extents_.end()) return;
    sum_.reserved_bytes -= it->second.size_bytes;
    segments_.erase(it->second.address);
    lost_.push_back(it->second);
    extents_.erase(it);
  }

  void BeginExtent(std::size_t index, EventIndex event) {
    const SegmentExtent& extent = timeline_.segments()[index].ExtentAfter(event);
    const auto next = segments_.lower_bound(extent.address);
    const bool hits_above = next != segments_.end() && next->first < extent.End();
    const bool hits_below = next != segments_.begin() && std::prev(next)->second > extent.address;
    if (hits_above || hits_below) Wrong(event, "two segments overlap");
    segments_[extent.address] = extent.End();
    extents_[index] = extent;
    sum_.reserved_bytes += extent.size_bytes;
  }

  bool IsWithinSegment(std::uint64_t begin, std::uint64_t end) const {
    const auto next = segments_.upper_bound(begin);
    return next != segments_.begin() && std::prev(next)->second >= end;
  }

  // Blocks of a range that a segment gave up must lie in what took its place.
  void CheckLost(EventIndex event) {
    for (const SegmentExtent& extent : lost_) {
      for (auto it = blocks_.lower_bound(extent.address); it != blocks_.end() && it->first < extent.End(); ++it) {
        if (!IsWithinSegment(it->first, it->second)) Wrong(event, "a segment went away under a block");
      }
    }
    lost_.clear();
  }

  void CheckPeak(absl::string_view name, const Peak& peak, std::uint64_t Totals::*sum) {
    Peak expected{timeline_.TotalsAfter(kBeforeWindow).*sum, kBeforeWindow};
    for (EventIndex e = 0; e < timeline_.event_count(); ++e) {
      if (timeline_.TotalsAfter(e).*sum > expected.bytes) expected = {timeline_.TotalsAfter(e).*sum, e};
    }
    if (peak.bytes != expected.bytes || peak.event != expected.event) {
      Wrong(expected.event, absl::StrCat("the ", name, " peak is here, not at event ", peak.event));
    }
  }

  void CheckOoms() {
    std::vector<EventIndex> expected;
    for (EventIndex e = 0; e < timeline_.event_count(); ++e) {
      if (timeline_.events()[static_cast<std::size_t>(e)].action == Action::kOom) expected.push_back(e);
    }
    if (timeline_.oom_events() != absl::MakeConstSpan(expected))
      Wrong(kBeforeWindow, "the list of oom events is wrong");
  }

  const Timeline& timeline_;
  absl::Status status_;
  std::vector<Change> changes_;  // by event
  std::size_t next_change_ = 0;
  std::map<std::uint64_t, std::uint64_t> blocks_, segments_;  // begin -> end
  std::map<std::size_t, SegmentExtent> extents_;              // in force, by segment
  std::vector<SegmentExtent> lost_;                           // no longer in force since this event
  Totals sum_;
};

}  // namespace

absl::Status Timeline::Validate() const { return Validator(*this).Run(); }

}  // namespace ashlar::timeline
