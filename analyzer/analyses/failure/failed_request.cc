#include "analyzer/analyses/failure/failed_request.h"

#include <algorithm>

#include "allocator/base/check.h"
#include "analyzer/analyses/failure/release_set.h"
#include "analyzer/analyses/failure/request_lane.h"
#include "analyzer/analyses/state/timeline_blocks.h"

namespace ashlar::analyses {
namespace {

using timeline::State;
using timeline::StateSegment;

// What no device has: keeps sums of hostile files from wrapping.
constexpr std::uint64_t kMostDeviceBytes = policy::kMaxRequestBytes;

std::uint64_t LargestRun(const StateSegment& segment) {
  std::uint64_t largest = 0;
  for (const timeline::FreeRange& run : timeline::FreeRanges(segment)) largest = std::max(largest, run.size_bytes);
  return largest;
}

// Free runs that only the stream, or only the pool, keeps away.
void SetFreeElsewhere(const RequestLane& lane, const State& state, FailedRequest& out) {
  for (const StateSegment& segment : state.segments) {
    if (segment.is_small_pool != lane.is_small()) continue;
    const bool is_its_stream = segment.stream == lane.stream();
    const bool is_its_pool = segment.pool == lane.pool();
    if (is_its_stream == is_its_pool) continue;
    std::uint64_t& largest = is_its_pool ? out.free_in_other_streams_bytes : out.free_in_other_pools_bytes;
    largest = std::max(largest, LargestRun(segment));
  }
}

void SetReturned(const timeline::Timeline& timeline, timeline::EventIndex begin, FailedRequest& out) {
  for (timeline::EventIndex event = begin; event < out.event; ++event) {
    const trace::Event& returned = timeline.events()[static_cast<std::size_t>(event)];
    const bool is_return =
        returned.action == trace::Action::kSegmentFree || returned.action == trace::Action::kSegmentUnmap;
    if (!is_return) continue;
    out.returned_bytes += returned.size_bytes;
    ++out.returned_segments;
  }
}

// What was free on the device when the ladder began: what is free now, less what came back in between.
std::uint64_t FreeBefore(const timeline::Timeline& timeline, timeline::EventIndex begin, const FailedRequest& failed) {
  const std::uint64_t before = timeline.TotalsAfter(begin - 1).reserved_bytes;
  const std::uint64_t after = timeline.TotalsAfter(failed.event).reserved_bytes;
  if (after >= before) return failed.device_free_bytes + (after - before);
  return failed.device_free_bytes - std::min(failed.device_free_bytes, before - after);
}

FailedRequest Describe(const timeline::Timeline& timeline, timeline::EventIndex event, const RequestLane& lane) {
  FailedRequest out;
  out.event = event;
  out.request_bytes = lane.rounded_bytes();
  out.segment_bytes = lane.segment_bytes();
  out.device_free_bytes = std::min(timeline.events()[static_cast<std::size_t>(event)].address, kMostDeviceBytes);
  out.stream = lane.stream();
  out.pool = lane.pool();
  out.is_small_pool = lane.is_small();
  return out;
}

}  // namespace

FailedRequest ExamineFailure(const timeline::Timeline& timeline, timeline::EventIndex event,
                             const policy::Options& options) {
  const trace::Event& oom = timeline.events()[static_cast<std::size_t>(event)];
  ASHLAR_CHECK(oom.action == trace::Action::kOom);
  const std::uint64_t rounded = std::clamp<std::uint64_t>(oom.size_bytes, 1, policy::kMaxRequestBytes);
  const RequestLane lane(rounded, oom.stream, oom.pool.value_or(PoolId{}), options);
  const State state = timeline.StateAt(event);
  FailedRequest out = Describe(timeline, event, lane);
  out.is_limited = lane.IsServedFresh(state, out.device_free_bytes);
  out.largest_cached_bytes = lane.LargestCached(state);
  out.largest_servable_bytes = out.largest_cached_bytes;
  if (!out.is_limited) {
    out.largest_servable_bytes = std::max(out.largest_cached_bytes, lane.LargestFresh(state, out.device_free_bytes));
  }
  SetFreeElsewhere(lane, state, out);

  const timeline::EventIndex begin = LadderBegin(timeline, event);
  SetReturned(timeline, begin, out);
  const State before = timeline.StateAt(begin - 1);
  out.rungs = ClimbLadder(lane, {&before, &state, FreeBefore(timeline, begin, out), out.is_limited});

  DeviceRoom room{out.device_free_bytes, out.device_free_bytes};
  if (out.is_limited) room = {0, lane.segment_bytes() - 1};
  out.release = FindReleaseSet(lane, state, ActiveBlocks(timeline, event), room);
  return out;
}

}  // namespace ashlar::analyses
