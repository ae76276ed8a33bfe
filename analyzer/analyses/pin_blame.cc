#include "analyzer/analyses/pin_blame.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/types/span.h"
#include "analyzer/analyses/active_blocks.h"

namespace ashlar::analyses {
namespace {

__extension__ using Wide = unsigned __int128;

// The lower block's share of a hole between two blocks: inverse to the sizes, so in proportion to the other's.
std::uint64_t LowerShare(std::uint64_t hole_bytes, std::uint64_t lower_bytes, std::uint64_t upper_bytes) {
  const Wide both = Wide{lower_bytes} + upper_bytes;
  return both == 0 ? hole_bytes / 2 : static_cast<std::uint64_t>(Wide{hole_bytes} * upper_bytes / both);
}

// The blame of each block of a segment, in address order.
std::vector<std::uint64_t> BlameOf(const timeline::StateSegment& segment) {
  const std::vector<timeline::StateBlock>& blocks = segment.blocks;
  std::vector<std::uint64_t> blame(blocks.size(), 0);
  if (blocks.empty()) return blame;
  blame.front() += blocks.front().address - segment.address;
  for (std::size_t i = 1; i < blocks.size(); ++i) {
    const std::uint64_t hole = blocks[i].address - blocks[i - 1].End();
    const std::uint64_t lower = LowerShare(hole, blocks[i - 1].size_bytes, blocks[i].size_bytes);
    blame[i - 1] += lower;
    blame[i] += hole - lower;
  }
  blame.back() += segment.End() - blocks.back().End();
  return blame;
}

Pin MakePin(const timeline::StateSegment& segment, const timeline::BlockSpan& block, std::uint64_t blame_bytes,
            timeline::EventIndex moment) {
  Pin pin;
  pin.address = block.address;
  pin.size_bytes = block.size_bytes;
  pin.blame_bytes = blame_bytes;
  pin.segment_address = segment.address;
  pin.segment_bytes = segment.size_bytes;
  pin.stack = block.stack;
  pin.is_pending = !block.IsLiveAfter(moment);
  pin.alloc_event = block.alloc_event;
  if (block.alloc_event != timeline::kBeforeWindow) {
    pin.age_events = static_cast<std::uint64_t>(moment - block.alloc_event);
  }
  return pin;
}

std::vector<PinGroup> GroupByStack(absl::Span<const Pin> pins) {
  std::map<trace::StackId, PinGroup> by_stack;
  for (const Pin& pin : pins) {
    PinGroup& group = by_stack[pin.stack];
    group.stack = pin.stack;
    group.oldest_event = group.blocks == 0 ? pin.alloc_event : std::min(group.oldest_event, pin.alloc_event);
    group.blame_bytes += pin.blame_bytes;
    group.size_bytes += pin.size_bytes;
    ++group.blocks;
  }
  std::vector<PinGroup> out;
  for (auto& [stack, group] : by_stack) out.push_back(std::move(group));
  std::stable_sort(out.begin(), out.end(),
                   [](const PinGroup& a, const PinGroup& b) { return a.blame_bytes > b.blame_bytes; });
  return out;
}

}  // namespace

PinBlame BlamePins(const timeline::Timeline& timeline, timeline::EventIndex moment) {
  const std::vector<std::size_t> active = ActiveBlocks(timeline, moment);
  PinBlame out;
  std::size_t first = 0;
  for (const timeline::StateSegment& segment : timeline.StateAt(moment).segments) {
    const std::size_t begin = first;
    first += segment.blocks.size();
    if (!segment.pool.IsDefault()) continue;
    const std::vector<std::uint64_t> blame = BlameOf(segment);
    for (std::size_t i = 0; i < blame.size(); ++i) {
      if (blame[i] == 0) continue;
      out.stranded_bytes += blame[i];
      out.pins.push_back(MakePin(segment, timeline.blocks()[active[begin + i]], blame[i], moment));
    }
  }
  std::stable_sort(out.pins.begin(), out.pins.end(),
                   [](const Pin& a, const Pin& b) { return a.blame_bytes > b.blame_bytes; });
  out.groups = GroupByStack(out.pins);
  return out;
}

}  // namespace ashlar::analyses
