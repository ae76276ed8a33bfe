#include "analyzer/analyses/failure/request_lane.h"

#include <algorithm>

#include "allocator/policy/servable_size.h"
#include "allocator/policy/size_rule.h"

namespace ashlar::analyses {

RequestLane::RequestLane(std::uint64_t rounded_bytes, Stream stream, PoolId pool, const policy::Options& options)
    : rounded_bytes_(rounded_bytes),
      stream_(stream),
      pool_(pool),
      is_small_(policy::IsSmall(rounded_bytes)),
      rules_(options),
      segment_bytes_(policy::SegmentBytes(rounded_bytes, options)),
      page_bytes_(policy::PageBytes(is_small_, options)) {}

bool RequestLane::Owns(const timeline::StateSegment& segment) const {
  if (segment.is_expandable && !options().expandable_segments) return false;  // passed over while the option is off
  return segment.stream == stream_ && segment.pool == pool_ && segment.is_small_pool == is_small_;
}

bool RequestLane::IsServedBy(const timeline::State& state) const {
  return std::any_of(state.segments.begin(), state.segments.end(), [this](const timeline::StateSegment& segment) {
    if (!Owns(segment)) return false;
    const std::vector<timeline::FreeRange> runs = timeline::FreeRanges(segment);
    return std::any_of(runs.begin(), runs.end(),
                       [this](const timeline::FreeRange& run) { return FitsIn(run.size_bytes); });
  });
}

std::uint64_t RequestLane::LargestCached(const timeline::State& state) const {
  std::uint64_t largest = 0;
  for (const timeline::StateSegment& segment : state.segments) {
    if (!Owns(segment)) continue;
    for (const timeline::FreeRange& run : timeline::FreeRanges(segment)) largest = std::max(largest, run.size_bytes);
  }
  return policy::LargestInRun(is_small_, largest);
}

std::uint64_t RequestLane::TailOf(const timeline::State& state) const {
  std::uint64_t tail = 0;
  for (const timeline::StateSegment& segment : state.segments) {
    if (!Owns(segment) || !segment.is_expandable) continue;
    const std::uint64_t end = segment.blocks.empty() ? segment.address : segment.blocks.back().End();
    tail = std::max(tail, segment.End() - end);
  }
  return tail;
}

std::uint64_t RequestLane::LargestFresh(const timeline::State& state, std::uint64_t free_bytes) const {
  return policy::LargestFromDevice(is_small_, free_bytes, TailOf(state), options());
}

bool RequestLane::IsServedFresh(const timeline::State& state, std::uint64_t free_bytes) const {
  return policy::IsServedFromDevice(rounded_bytes_, free_bytes, TailOf(state), options());
}

}  // namespace ashlar::analyses
