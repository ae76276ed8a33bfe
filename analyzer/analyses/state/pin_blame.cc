#include "analyzer/analyses/state/pin_blame.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/types/span.h"
#include "allocator/core/accounting.h"
#include "analyzer/analyses/state/timeline_blocks.h"

namespace ashlar::analyses {
namespace {

std::vector<std::uint64_t> BlameOf(const timeline::StateSegment& segment) {
  std::vector<core::Occupied> blocks;
  for (const timeline::StateBlock& block : segment.blocks) blocks.push_back({block.address, block.size_bytes});
  return core::BlameOfBlocks(segment.address, segment.End(), blocks);
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
