#include "analyzer/timeline/start_state.h"

namespace ashlar::timeline {

std::vector<FreeRange> FreeRanges(const StateSegment& segment) {
  std::vector<FreeRange> ranges;
  std::uint64_t from = segment.address;
  for (const StateBlock& block : segment.blocks) {
    if (block.address > from) ranges.push_back({from, block.address - from});
    from = block.End();
  }
  if (segment.End() > from) ranges.push_back({from, segment.End() - from});
  return ranges;
}

Totals SumOf(const State& state) {
  Totals sum;
  for (const StateSegment& segment : state.segments) {
    sum.reserved_bytes += segment.size_bytes;
    for (const StateBlock& block : segment.blocks) {
      sum.active_bytes += block.size_bytes;
      if (block.state != trace::BlockState::kLive) continue;
      sum.allocated_bytes += block.size_bytes;
      sum.requested_bytes += block.requested_bytes.value_or(0);
    }
  }
  return sum;
}

}  // namespace ashlar::timeline
