// Finds the free memory that may serve a request at all, by its lane (pool, stream, size class) and the limits on block
// sizes (docs/internals/policy.md). Private to the examination of failed requests.
#ifndef ASHLAR_ANALYZER_ANALYSES_FAILURE_REQUEST_LANE_H_
#define ASHLAR_ANALYZER_ANALYSES_FAILURE_REQUEST_LANE_H_

#include <cstdint>
#include <vector>

#include "allocator/policy/heap.h"
#include "analyzer/analyses/failure/failed_request.h"
#include "analyzer/timeline/start_state.h"

namespace ashlar::analyses {

class RequestLane {
 public:
  // `rounded_bytes` in [1, policy::kMaxRequestBytes].
  RequestLane(std::uint64_t rounded_bytes, Stream stream, PoolId pool, const policy::Options& options);

  std::uint64_t rounded_bytes() const { return rounded_bytes_; }
  std::uint64_t segment_bytes() const { return segment_bytes_; }  // of the new segment it needs
  std::uint64_t page_bytes() const { return page_bytes_; }        // of an expandable one
  bool is_small() const { return is_small_; }
  Stream stream() const { return stream_; }
  PoolId pool() const { return pool_; }
  const policy::Options& options() const { return rules_.options(); }

  // Whether blocks of this segment are looked at.
  bool Owns(const timeline::StateSegment& segment) const;
  // Whether a free block of this size in its lane serves it.
  bool FitsIn(std::uint64_t block_bytes) const { return rules_.MayServe(rounded_bytes_, block_bytes); }
  bool IsServedBy(const timeline::State& state) const;
  // The greatest rounded size of its size class that a free run of its lane serves; 0 when there is none.
  std::uint64_t LargestCached(const timeline::State& state) const;
  // The same from `free_bytes` of the device, by a new segment or by growing an expandable one of its lane.
  std::uint64_t LargestFresh(const timeline::State& state, std::uint64_t free_bytes) const;
  // Whether the request itself can be had that way.
  bool IsServedFresh(const timeline::State& state, std::uint64_t free_bytes) const;

 private:
  // How its lane grows: a private pool may be of pages whatever the settings (CachingAllocator::TagPool).
  policy::Options GrowthOptions(const timeline::State& state) const;
  // The most free bytes at the end of an expandable segment, which new pages would continue.
  std::uint64_t TailOf(const timeline::State& state) const;

  std::uint64_t rounded_bytes_;
  Stream stream_;
  PoolId pool_;
  bool is_small_;
  policy::Heap rules_;  // empty: asked for its rules only
  std::uint64_t segment_bytes_;
  std::uint64_t page_bytes_;
};

// The rungs that an allocator tries before it gives a request up (docs/internals/policy.md), and what each could
// return. Private to the examination of failed requests.

// The first event of what happened right before `oom` inside the same call: finished frees, segments returned, pages
// mapped and not enough. `oom` itself when nothing did. An empty_cache call just before looks the same.
timeline::EventIndex LadderBegin(const timeline::Timeline& timeline, timeline::EventIndex oom);

struct LadderStates {
  const timeline::State* before = nullptr;  // when the ladder began
  const timeline::State* after = nullptr;   // when the request was given up
  std::uint64_t free_before_bytes = 0;      // of the device
  bool is_limited = false;                  // the device had room, a limit refused it
};

std::vector<LadderRung> ClimbLadder(const RequestLane& lane, const LadderStates& states);

}  // namespace ashlar::analyses

#endif  // ASHLAR_ANALYZER_ANALYSES_FAILURE_REQUEST_LANE_H_
