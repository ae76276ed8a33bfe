// A state in which a request failed, written down: as the timeline that analyses get, and as a real allocator in which
// the same request can be made again after some blocks are freed.
#ifndef ASHLAR_TESTS_ANALYZER_ANALYSES_FAILURE_FAILURE_CASE_H_
#define ASHLAR_TESTS_ANALYZER_ANALYSES_FAILURE_FAILURE_CASE_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/core/caching_allocator.h"
#include "allocator/device/sim_device.h"
#include "analyzer/analyses/failure/failed_request.h"
#include "analyzer/replay/replayed_window.h"
#include "analyzer/replay/reservations.h"
#include "analyzer/timeline/timeline_builder.h"
#include "gtest/gtest.h"

namespace ashlar::analyses {

inline constexpr std::uint64_t kSegmentsBase = 0x7f0000000000;
inline constexpr std::uint64_t kReservationsBase = kSegmentsBase + (std::uint64_t{1} << 45);

struct FailureCase {
  std::string conf;
  timeline::State state;
  std::uint64_t request_bytes = 0;  // a multiple of 512
  Stream stream{};
  PoolId pool = {};
  std::uint64_t free_bytes = 0;  // of the device

  policy::Options Options() const { return *policy::ParseConf(conf, policy::Compat::kTorch210); }

  timeline::StateSegment& AddSegment(std::uint64_t bytes, bool is_small = false, bool is_expandable = false) {
    timeline::StateSegment segment;
    segment.address = is_expandable ? kReservationsBase : kSegmentsBase;
    for (const timeline::StateSegment& before : state.segments) {
      if (before.is_expandable == is_expandable) segment.address = before.address + 64 * kGiB;
    }
    segment.size_bytes = bytes;
    segment.is_small_pool = is_small;
    segment.is_expandable = is_expandable;
    state.segments.push_back(segment);
    std::sort(state.segments.begin(), state.segments.end(),
              [](const auto& a, const auto& b) { return a.address < b.address; });
    return *std::find_if(state.segments.begin(), state.segments.end(),
                         [&segment](const auto& s) { return s.address == segment.address; });
  }

  timeline::Timeline MakeTimeline() const {
    timeline::StartState start;
    start.segments = state.segments;
    timeline::TimelineBuilder builder(std::move(start));
    trace::Event oom;
    oom.action = trace::Action::kOom;
    oom.address = free_bytes;
    oom.size_bytes = request_bytes;
    oom.stream = stream;
    oom.pool = pool;
    EXPECT_TRUE(builder.Add(oom).ok());
    absl::StatusOr<timeline::Timeline> timeline = builder.Finish();
    EXPECT_TRUE(timeline.ok()) << timeline.status();
    return *std::move(timeline);
  }

  FailedRequest Examine() const { return ExamineFailure(MakeTimeline(), 0, Options()); }

  // Whether a request of `bytes` succeeds after these blocks (counted through the state) are freed: the whole ladder of
  // a real allocator that is put into the state.
  bool SucceedsWithout(const std::set<std::size_t>& freed, std::uint64_t bytes,
                       std::optional<std::uint64_t> limit_bytes = {}) const {
    device::SimDeviceOptions device_options;
    device_options.capacity_bytes = free_bytes + timeline::SumOf(state).reserved_bytes;
    if (limit_bytes.has_value()) device_options.capacity_bytes = std::uint64_t{1} << 50;  // a power: the limit is exact
    device::SimDevice device(device_options);
    core::CachingAllocator allocator(&device, Options());
    if (limit_bytes.has_value()) {
      EXPECT_TRUE(allocator.SetMemoryFraction(static_cast<double>(*limit_bytes) * 0x1.0p-50).ok());
    }
    replay::Reservations reservations;
    for (const timeline::StateSegment& range : state.segments) {
      if (!range.is_expandable) continue;
      replay::Reservation& reservation = reservations.all.emplace_back();
      reservation.lane = {Handle(range.stream), range.is_small_pool, range.pool};
      reservation.begin = range.address;
      reservation.end = range.address + 60 * kGiB / (20 * kMiB) * (20 * kMiB);
      reservation.ranges = {&range};
    }
    const absl::StatusOr<std::vector<core::Block*>> blocks =
        replay::RestoreState(state, reservations, allocator, device);
    EXPECT_TRUE(blocks.ok()) << blocks.status();
    std::size_t index = 0;
    for (const timeline::StateSegment& segment : state.segments) {
      for (const timeline::StateBlock& block : segment.blocks) {
        core::Block* restored = (*blocks)[index];
        const bool is_pending = block.state == trace::BlockState::kPending;
        if (is_pending) allocator.RecordStream(restored, Stream{99});
        if (is_pending || freed.count(index) > 0) allocator.Free(restored);
        ++index;
      }
    }
    return allocator.Allocate(bytes, stream, pool).ok();
  }

  // The live blocks' sizes, 0 for pending ones, counted through the state.
  std::vector<std::uint64_t> LiveSizes() const {
    std::vector<std::uint64_t> out;
    for (const timeline::StateSegment& segment : state.segments) {
      for (const timeline::StateBlock& block : segment.blocks) {
        out.push_back(block.state == trace::BlockState::kLive ? block.size_bytes : 0);
      }
    }
    return out;
  }

  std::string Print() const {
    std::string out = absl::StrCat("conf \"", conf, "\", request ", request_bytes, " on stream ", Handle(stream),
                                   " pool ", pool.second, ", device free ", free_bytes, "\n");
    for (const timeline::StateSegment& segment : state.segments) {
      absl::StrAppend(&out, "  segment ", segment.size_bytes, " stream ", Handle(segment.stream), " pool ",
                      segment.pool.second, segment.is_small_pool ? " small" : " large",
                      segment.is_expandable ? " expandable:" : ":");
      for (const timeline::StateBlock& block : segment.blocks) {
        absl::StrAppend(&out, " [", block.address - segment.address, " +", block.size_bytes,
                        block.state == trace::BlockState::kPending ? " pending]" : "]");
      }
      out += "\n";
    }
    return out;
  }
};

inline timeline::StateBlock LiveBlock(const timeline::StateSegment& segment, std::uint64_t offset,
                                      std::uint64_t bytes) {
  return {.address = segment.address + offset, .size_bytes = bytes, .requested_bytes = bytes};
}

}  // namespace ashlar::analyses

#endif  // ASHLAR_TESTS_ANALYZER_ANALYSES_FAILURE_FAILURE_CASE_H_
