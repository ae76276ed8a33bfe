#include "analyzer/analyses/request_lane.h"

#include <algorithm>

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

// A small request is at most 1 MiB, a large one more.
std::uint64_t RequestLane::OfItsClass(std::uint64_t run_bytes) const {
  if (is_small_) return std::min(run_bytes, policy::kSmallMaxBytes);
  return run_bytes > policy::kSmallMaxBytes ? run_bytes : 0;
}

std::uint64_t RequestLane::LargestCached(const timeline::State& state) const {
  std::uint64_t largest = 0;
  for (const timeline::StateSegment& segment : state.segments) {
    if (!Owns(segment)) continue;
    for (const timeline::FreeRange& run : timeline::FreeRanges(segment)) largest = std::max(largest, run.size_bytes);
  }
  return OfItsClass(largest);
}

std::uint64_t RequestLane::LargestFresh(const timeline::State& state, std::uint64_t free_bytes) const {
  if (options().expandable_segments) {
    std::uint64_t tail = 0;  // free bytes that the new pages continue
    for (const timeline::StateSegment& segment : state.segments) {
      if (!Owns(segment) || !segment.is_expandable) continue;
      const std::uint64_t end = segment.blocks.empty() ? segment.address : segment.blocks.back().End();
      tail = std::max(tail, segment.End() - end);
    }
    const std::uint64_t pages = RoundDown(free_bytes, page_bytes_);
    return pages == 0 ? 0 : OfItsClass(tail + pages);
  }
  if (is_small_) return free_bytes >= policy::kSmallSegmentBytes ? policy::kSmallMaxBytes : 0;
  const std::uint64_t fitted = RoundDown(free_bytes, policy::kRoundLargeBytes);
  if (fitted >= policy::kMinLargeBytes) return fitted;
  return free_bytes >= options().large_segment_bytes ? policy::kMinLargeBytes - policy::kMinBlockBytes : 0;
}

bool RequestLane::IsServedFresh(const timeline::State& state, std::uint64_t free_bytes) const {
  if (options().expandable_segments) return LargestFresh(state, free_bytes) >= rounded_bytes_;
  return free_bytes >= segment_bytes_;
}

}  // namespace ashlar::analyses
