#include "analyzer/analyses/state/state_accounting.h"

#include <algorithm>
#include <vector>

namespace ashlar::analyses {

core::Accounting AccountState(const timeline::State& state) {
  core::AccountingSum sum;
  std::vector<core::AccountedBlock> occupied;
  for (const timeline::StateSegment& segment : state.segments) {
    occupied.clear();
    for (const timeline::StateBlock& block : segment.blocks) {
      occupied.push_back({block.size_bytes, block.requested_bytes, block.state});
    }
    sum.AddSegment(segment.size_bytes, segment.pool, occupied);
  }
  return sum.result();
}

std::uint64_t LargestFreeBytes(const timeline::State& state, Stream stream, bool is_small_pool, PoolId pool) {
  std::uint64_t largest = 0;
  for (const timeline::StateSegment& segment : state.segments) {
    if (segment.stream != stream || segment.is_small_pool != is_small_pool || segment.pool != pool) continue;
    for (const timeline::FreeRange& range : timeline::FreeRanges(segment))
      largest = std::max(largest, range.size_bytes);
  }
  return largest;
}

}  // namespace ashlar::analyses
