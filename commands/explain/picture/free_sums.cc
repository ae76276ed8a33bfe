#include "commands/explain/picture/free_sums.h"

#include <algorithm>

namespace ashlar::answers {
namespace {

using timeline::BlockSpan;
using timeline::EventIndex;
using timeline::SegmentExtent;
using timeline::SegmentSpan;

constexpr std::uint32_t kNoBlock = 0xffffffff;

}  // namespace

FreeSums::FreeSums(const timeline::Timeline& timeline) : timeline_(timeline), uses_(timeline.segments().size()) {
  NoteEvents();
  Start();
}

void FreeSums::NoteEvents() {
  const absl::Span<const BlockSpan> blocks = timeline_.blocks();
  block_of_event_.assign(static_cast<std::size_t>(timeline_.event_count()), kNoBlock);
  homes_.resize(blocks.size());
  for (std::uint32_t i = 0; i < blocks.size(); ++i) {
    homes_[i] = blocks[i].segment;
    for (const EventIndex event :
         {blocks[i].alloc_event, blocks[i].free_requested_event, blocks[i].free_completed_event}) {
      if (event >= 0 && event < timeline_.event_count()) block_of_event_[static_cast<std::size_t>(event)] = i;
    }
  }
  for (std::uint32_t i = 0; i < timeline_.segments().size(); ++i) {
    const SegmentSpan& segment = timeline_.segments()[i];
    for (const SegmentExtent& extent : segment.extents) {
      if (extent.event >= 0) segment_changes_.emplace_back(extent.event, i);
    }
    if (segment.end_event != timeline::kNever) segment_changes_.emplace_back(segment.end_event, i);
  }
  std::sort(segment_changes_.begin(), segment_changes_.end());
}

void FreeSums::Start() {
  for (std::uint32_t i = 0; i < uses_.size(); ++i) {
    const SegmentSpan& segment = timeline_.segments()[i];
    if (!segment.ExistsAfter(timeline::kBeforeWindow)) continue;
    uses_[i].size_bytes = segment.ExtentAfter(timeline::kBeforeWindow).size_bytes;
    Add(i);
  }
  for (std::uint32_t i = 0; i < timeline_.blocks().size(); ++i) {
    const BlockSpan& block = timeline_.blocks()[i];
    if (!block.IsActiveAfter(timeline::kBeforeWindow)) continue;
    Enter(i);
    if (block.IsLiveAfter(timeline::kBeforeWindow) && !block.requested_bytes.has_value()) ++unknown_requests_;
  }
}

void FreeSums::AdvanceTo(EventIndex event) {
  while (now_ < event) Step(++now_);
}

void FreeSums::Step(EventIndex event) {
  if (next_change_ < segment_changes_.size() && segment_changes_[next_change_].first == event) ChangeSegments(event);
  const std::uint32_t index = block_of_event_[static_cast<std::size_t>(event)];
  if (index == kNoBlock) return;
  const BlockSpan& block = timeline_.blocks()[index];
  if (block.alloc_event == event) {
    Enter(index);
    if (!block.requested_bytes.has_value()) ++unknown_requests_;
  }
  if (block.free_requested_event == event && !block.requested_bytes.has_value()) --unknown_requests_;
  if (block.free_completed_event == event) Leave(index);
}

// One event obtains or returns one range: a segment ends where it was joined to another or given back, and one begins
// anew or with what lay above a hole.
void FreeSums::ChangeSegments(EventIndex event) {
  const std::size_t begin = next_change_;
  while (next_change_ < segment_changes_.size() && segment_changes_[next_change_].first == event) ++next_change_;
  for (std::size_t i = begin; i < next_change_; ++i) {
    const std::uint32_t index = segment_changes_[i].second;
    Remove(index);
    const SegmentSpan& segment = timeline_.segments()[index];
    uses_[index].size_bytes = segment.ExistsAfter(event) ? segment.ExtentAfter(event).size_bytes : 0;
    Add(index);
  }
  if (next_change_ == begin + 1) return;
  for (std::size_t i = begin; i < next_change_; ++i) {
    const std::uint32_t index = segment_changes_[i].second;
    const SegmentSpan& segment = timeline_.segments()[index];
    if (segment.ExistsAfter(event)) Move(index, segment.ExtentAfter(event));
  }
}

// The blocks in the range of a segment are its own from here on.
void FreeSums::Move(std::uint32_t segment, SegmentExtent range) {
  for (auto at = movable_.lower_bound(range.address); at != movable_.end() && at->first < range.End(); ++at) {
    const std::uint32_t home = homes_[at->second];
    if (home == segment) continue;
    const std::uint64_t size_bytes = timeline_.blocks()[at->second].size_bytes;
    for (const std::uint32_t changed : {home, segment}) Remove(changed);
    uses_[home].used_bytes -= size_bytes;
    --uses_[home].blocks;
    uses_[segment].used_bytes += size_bytes;
    ++uses_[segment].blocks;
    homes_[at->second] = segment;
    for (const std::uint32_t changed : {home, segment}) Add(changed);
  }
}

void FreeSums::Enter(std::uint32_t block) {
  const std::uint32_t home = homes_[block];
  Remove(home);
  uses_[home].used_bytes += timeline_.blocks()[block].size_bytes;
  ++uses_[home].blocks;
  Add(home);
  if (timeline_.segments()[home].is_expandable) movable_[timeline_.blocks()[block].address] = block;
}

void FreeSums::Leave(std::uint32_t block) {
  const std::uint32_t home = homes_[block];
  Remove(home);
  uses_[home].used_bytes -= timeline_.blocks()[block].size_bytes;
  --uses_[home].blocks;
  Add(home);
  if (timeline_.segments()[home].is_expandable) movable_.erase(timeline_.blocks()[block].address);
}

std::uint64_t& FreeSums::SumOf(std::uint32_t segment) {
  if (!timeline_.segments()[segment].pool.IsDefault()) return private_free_bytes_;
  return uses_[segment].blocks == 0 ? whole_free_bytes_ : stranded_bytes_;
}

// Unsigned sums wrap where blocks are moved one by one, and come out right at the end of the step.
void FreeSums::Add(std::uint32_t segment) { SumOf(segment) += uses_[segment].size_bytes - uses_[segment].used_bytes; }

void FreeSums::Remove(std::uint32_t segment) {
  SumOf(segment) -= uses_[segment].size_bytes - uses_[segment].used_bytes;
}

}  // namespace ashlar::answers
