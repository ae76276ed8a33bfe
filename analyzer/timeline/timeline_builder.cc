#include "analyzer/timeline/timeline_builder.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "analyzer/timeline/occupancy.h"

namespace ashlar::timeline {
namespace {

SegmentSpan SpanOver(const SegmentRange& range) {
  return {.extents = {},
          .stream = range.stream,
          .pool = range.pool,
          .is_small_pool = range.is_small_pool,
          .is_expandable = range.is_expandable,
          .stack = range.stack,
          .end_event = kNever};
}

void Raise(Peak& peak, std::uint64_t bytes, EventIndex event) {
  if (bytes > peak.bytes) peak = {bytes, event};
}

}  // namespace

TimelineBuilder::TimelineBuilder(const StartState& start, Maker maker) {
  columns_.device = start.device;
  columns_.maker = maker;
  for (const StateSegment& segment : start.segments) LoadSegment(segment);
  totals_ = SumOf(start);
  columns_.start_totals = totals_;
  RaisePeaks(kBeforeWindow);
}

void TimelineBuilder::LoadSegment(const StateSegment& segment) {
  const SegmentRange range{.address = segment.address,
                           .size_bytes = segment.size_bytes,
                           .stream = segment.stream,
                           .is_small_pool = segment.is_small_pool,
                           .is_expandable = segment.is_expandable,
                           .pool = segment.pool,
                           .stack = segment.stack,
                           .id = static_cast<std::uint32_t>(columns_.segments.size())};
  status_.Update(picture_.AddSegment(range));
  columns_.segments.push_back(SpanOver(range));
  columns_.segments.back().extents.push_back({kBeforeWindow, range.address, range.size_bytes});
  for (const StateBlock& block : segment.blocks) LoadBlock(block);
}

void TimelineBuilder::LoadBlock(const StateBlock& block) {
  const bool is_pending = block.state == trace::BlockState::kPending;
  const auto segment = static_cast<std::uint32_t>(columns_.segments.size() - 1);
  const SegmentSpan& around = columns_.segments.back();
  status_.Update(picture_.AddBlock({.address = block.address,
                                    .size_bytes = block.size_bytes,
                                    .id = static_cast<std::uint32_t>(columns_.blocks.size()),
                                    .is_pending = is_pending}));
  columns_.blocks.push_back({.address = block.address,
                             .size_bytes = block.size_bytes,
                             .requested_bytes = block.requested_bytes,
                             .stream = around.stream,
                             .pool = around.pool,
                             .is_small_pool = around.is_small_pool,
                             .size_is_minimum = block.size_is_minimum,
                             .stack = block.stack,
                             .segment = segment,
                             .alloc_event = kBeforeWindow,
                             .free_requested_event = is_pending ? kBeforeWindow : kNever,
                             .free_completed_event = kNever});
}

void TimelineBuilder::Reserve(std::size_t events, std::size_t blocks) {
  columns_.totals.reserve(columns_.totals.size() + events);
  columns_.blocks.reserve(columns_.blocks.size() + blocks);
  if (keeps_) added_.reserve(added_.size() + events);
}

absl::Status TimelineBuilder::Add(const trace::Event& event, std::uint64_t block_size_bytes) {
  return Add(event, EventFacts{.block_size_bytes = block_size_bytes});
}

absl::Status TimelineBuilder::Add(const trace::Event& event, const EventFacts& facts) {
  if (!status_.ok()) return status_;
  if (Now() >= kMostEvents) {
    return status_ =
               absl::FailedPreconditionError(absl::StrCat("device ", columns_.device, ": more than ", kMostEvents,
                                                          " events: choose a part of them (--max-events, --window)"));
  }
  if (absl::Status status = Apply(event, facts); !status.ok()) {
    return status_ = Disagreement(columns_.device, Now(), event, status.message());
  }
  RaisePeaks(Now());
  columns_.totals.push_back(totals_);
  if (keeps_) added_.push_back(event);
  return absl::OkStatus();
}

absl::Status TimelineBuilder::Apply(const trace::Event& event, const EventFacts& facts) {
  if (IsSegmentEvent(event.action)) return ChangeSegments(event, facts);
  switch (event.action) {
    case trace::Action::kAlloc:
      return Allocate(event, facts.block_size_bytes);
    case trace::Action::kFreeRequested:
      return RequestFree(event);
    case trace::Action::kFreeCompleted:
      return CompleteFree(event);
    case trace::Action::kOom:
      columns_.oom_events.push_back(Now());
      return absl::OkStatus();
    default:
      return absl::OkStatus();
  }
}

absl::Status TimelineBuilder::Allocate(const trace::Event& event, std::uint64_t block_size_bytes) {
  if (block_size_bytes < event.size_bytes) {
    return absl::FailedPreconditionError(
        absl::StrCat("expected a block as big as its request, found ", block_size_bytes, " B"));
  }
  const auto id = static_cast<std::uint32_t>(columns_.blocks.size());
  const OccupiedBlock block{.address = event.address, .size_bytes = block_size_bytes, .id = id};
  if (absl::Status status = picture_.AddBlock(block); !status.ok()) return status;
  const SegmentRange& segment = *picture_.SegmentAround(event.address);
  columns_.blocks.push_back({.address = event.address,
                             .size_bytes = block_size_bytes,
                             .requested_bytes = event.size_bytes,
                             .stream = event.stream,
                             .pool = segment.pool,
                             .is_small_pool = segment.is_small_pool,
                             .size_is_minimum = false,
                             .stack = event.stack,
                             .segment = segment.id,
                             .alloc_event = Now(),
                             .free_requested_event = kNever,
                             .free_completed_event = kNever});
  totals_.allocated_bytes += block_size_bytes;
  totals_.active_bytes += block_size_bytes;
  totals_.requested_bytes += event.size_bytes;
  return absl::OkStatus();
}

absl::Status TimelineBuilder::RequestFree(const trace::Event& event) {
  OccupiedBlock* block = picture_.BlockAt(event.address);
  if (block == nullptr || block->is_pending) {
    return absl::FailedPreconditionError(
        absl::StrCat("expected a live block there, found ", block == nullptr ? "none" : "a pending one"));
  }
  block->is_pending = true;
  SpanOf(*block).free_requested_event = Now();
  totals_.allocated_bytes -= block->size_bytes;
  totals_.requested_bytes -= SpanOf(*block).requested_bytes.value_or(0);
  return absl::OkStatus();
}

absl::Status TimelineBuilder::CompleteFree(const trace::Event& event) {
  OccupiedBlock* block = picture_.BlockAt(event.address);
  if (block == nullptr || !block->is_pending) {
    return absl::FailedPreconditionError(
        absl::StrCat("expected a pending block there, found ", block == nullptr ? "none" : "a live one"));
  }
  SpanOf(*block).free_completed_event = Now();
  totals_.active_bytes -= block->size_bytes;
  picture_.RemoveBlock(event.address);
  return absl::OkStatus();
}

absl::Status TimelineBuilder::ChangeSegments(const trace::Event& event, const EventFacts& facts) {
  // Unmapping may leave nothing but what was there, so remember who it was.
  const SegmentRange* around = std::as_const(picture_).SegmentAround(event.address);
  const SegmentRange* above = picture_.SegmentStartingAt(event.address + event.size_bytes);
  const std::optional<std::uint32_t> old_id = around ? std::optional(around->id) : std::nullopt;
  const std::optional<std::uint32_t> above_id = above ? std::optional(above->id) : std::nullopt;
  const auto new_id = static_cast<std::uint32_t>(columns_.segments.size());
  if (absl::Status status = ApplySegmentEvent(event, facts, new_id, picture_); !status.ok()) return status;
  const bool is_gain = event.action == trace::Action::kSegmentAlloc || event.action == trace::Action::kSegmentMap;
  totals_.reserved_bytes =
      is_gain ? totals_.reserved_bytes + event.size_bytes : totals_.reserved_bytes - event.size_bytes;
  RecordSegmentChange(event, is_gain ? above_id : old_id);
  return absl::OkStatus();
}

// `touched_id`: the segment that may have ended with this event.
void TimelineBuilder::RecordSegmentChange(const trace::Event& event, std::optional<std::uint32_t> touched_id) {
  const std::uint64_t end = event.address + event.size_bytes;
  const SegmentRange* below = picture_.SegmentEndingAt(event.address);
  const SegmentRange* inside = std::as_const(picture_).SegmentAround(event.address);
  const SegmentRange* above = picture_.SegmentStartingAt(end);
  bool is_touched_there = !touched_id.has_value();
  for (const SegmentRange* range : {below, inside, above}) {
    if (range == nullptr) continue;
    is_touched_there = is_touched_there || range->id == *touched_id;
    RecordExtent(*range);
  }
  if (!is_touched_there) columns_.segments[*touched_id].end_event = Now();
}

// Notes the range if it is new or not what it was.
void TimelineBuilder::RecordExtent(const SegmentRange& range) {
  if (range.id == columns_.segments.size()) columns_.segments.push_back(SpanOver(range));
  std::vector<SegmentExtent>& extents = columns_.segments[range.id].extents;
  if (!extents.empty() && extents.back().address == range.address && extents.back().size_bytes == range.size_bytes) {
    return;
  }
  extents.push_back({Now(), range.address, range.size_bytes});
}

void TimelineBuilder::RaisePeaks(EventIndex event) {
  Raise(columns_.allocated_peak, totals_.allocated_bytes, event);
  Raise(columns_.active_peak, totals_.active_bytes, event);
  Raise(columns_.reserved_peak, totals_.reserved_bytes, event);
}

absl::StatusOr<Timeline> TimelineBuilder::Finish() {
  if (!status_.ok()) return status_;
  columns_.events = keeps_ ? trace::EventList(std::exchange(added_, {})) : std::exchange(shared_, {});
  return Timeline(std::exchange(columns_, {}));
}

}  // namespace ashlar::timeline
