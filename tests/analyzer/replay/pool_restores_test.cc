// Private pools that are put back into an earlier state, as CUDA graph trees do: the replay of the record follows them,
// and so does one under other settings, which places blocks elsewhere.
#include "analyzer/replay/pool_restores.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "allocator/base/rng.h"
#include "analyzer/replay/recorded_replay.h"
#include "analyzer/whatif/what_if.h"
#include "analyzer/whatif/what_if_input.h"
#include "tests/analyzer/replay/recorder.h"

namespace ashlar::replay {
namespace {

using policy::Compat;
using trace::Action;
using trace::Event;

constexpr std::uint64_t kPool = 3;

// Branch after branch from one kept state; between them and beside them the default pool is used.
class TreeProgram {
 public:
  TreeProgram(std::uint64_t seed, std::string conf) : rng_(seed) { program_.conf = std::move(conf); }

  Program Make() {
    Fill(/*branch=*/40);
    program_.ops.push_back({.kind = OpKind::kKeepPool, .pool = kPool});
    const std::vector<std::uint32_t> kept = live_;
    for (int branch = 0; branch < 4; ++branch) {
      Fill(30);
      program_.ops.push_back({.kind = OpKind::kPutBackPool, .pool = kPool});
      live_ = kept;
    }
    Fill(30);
    return std::move(program_);
  }

 private:
  void Fill(int count) {
    for (int i = 0; i < count; ++i) {
      if (rng_.Below(3) > 0 || live_.empty()) {
        live_.push_back(Allocate(kPool));
      } else {
        std::swap(live_[rng_.Below(live_.size())], live_.back());
        Free(live_.back());
        live_.pop_back();
      }
      if (rng_.Below(6) == 0) Free(Allocate(0));
    }
  }

  std::uint32_t Allocate(std::uint64_t pool) {
    const std::uint64_t bytes = rng_.Below(2) == 0 ? rng_.Between(512, kMiB) : rng_.Between(kMiB, 30 * kMiB);
    program_.ops.push_back({.kind = OpKind::kAlloc, .id = next_id_, .bytes = bytes, .pool = pool});
    return next_id_++;
  }
  void Free(std::uint32_t id) { program_.ops.push_back({.kind = OpKind::kFree, .id = id}); }

  Rng rng_;
  Program program_;
  std::vector<std::uint32_t> live_;
  std::uint32_t next_id_ = 0;
};

std::uint64_t PeakReserved(const Recording& recording) {
  return static_cast<std::uint64_t>(recording.stats.reserved_bytes.all().peak);
}

// Recorded by default, foretold under another setting, and run under it.
void CompareUnder(std::uint64_t seed, const std::string& conf) {
  SCOPED_TRACE(seed);
  const Recording recording = Record(TreeProgram(seed, "").Make());
  absl::StatusOr<RecordedReplay> replay = ReplayAsRecorded(
      MakeSnapshot(recording, {}), 0, {.compat = Compat::kTorch210, .free_order = policy::FreeOrder::kAddress});
  ASSERT_TRUE(replay.ok()) << replay.status();
  EXPECT_TRUE(replay->warm.fidelity.IsExact()) << replay->warm.fidelity.matched << " of " << replay->warm.fidelity.total
                                               << ", " << replay->warm.fidelity.final_state_difference;
  EXPECT_FALSE(replay->program.requests.put_back.empty());
  const timeline::Timeline observed = std::exchange(replay->observed, {});
  const whatif::WhatIfInput input =
      whatif::InputOf(*replay, observed, {.segment_addresses = device::AddressOrder::kAscending});
  const auto row = whatif::RunWhatIf(input.requests, input.settings, *policy::ParseConf(conf, Compat::kTorch210));
  ASSERT_TRUE(row.ok()) << row.status();
  EXPECT_EQ(row->peak_reserved_bytes, PeakReserved(Record(TreeProgram(seed, conf).Make())));
}

TEST(PoolRestoresTest, ReplaysFollow) {
  for (std::uint64_t seed = 0; seed < 40 && !testing::Test::HasFailure(); ++seed) {
    CompareUnder(seed, "");
    CompareUnder(seed, "max_split_size_mb:64");
    CompareUnder(seed, "roundup_power2_divisions:4");
  }
}

Event Made(Action action, std::uint64_t address, std::uint64_t size_bytes) {
  Event out;
  out.action = action;
  out.address = address;
  out.size_bytes = size_bytes;
  return out;
}

std::vector<Event> Joined(std::vector<Event> a, const std::vector<Event>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::vector<Event> FreedAtOnce(std::uint64_t address, std::uint64_t size_bytes) {
  return {Made(Action::kFreeRequested, address, size_bytes), Made(Action::kFreeCompleted, address, size_bytes)};
}

SegmentRanges TwoSegments() {
  SegmentRanges out{timeline::StartState{}};
  out.Apply(Made(Action::kSegmentAlloc, 1000, 100));
  out.Apply(Made(Action::kSegmentAlloc, 1100, 50));
  return out;
}

TEST(FindPutBackTest, SegmentsThatAreFilledFromEndToEnd) {
  const std::vector<Event> first = {Made(Action::kAlloc, 1000, 60), Made(Action::kAlloc, 1060, 40)};
  const std::vector<Event> second = {Made(Action::kAlloc, 1100, 50)};
  const std::vector<Event> events = Joined(Joined(first, FreedAtOnce(1060, 40)), second);
  const PutBackRun run = FindPutBack(events, 0, TwoSegments());
  EXPECT_TRUE(run.is_certain);
  EXPECT_EQ(run.end, events.size());
  EXPECT_EQ(run.is_free, std::vector<bool>({false, true, false, false, false}));
}

TEST(FindPutBackTest, OrdinaryRequestsAreNone) {
  const SegmentRanges ranges = TwoSegments();
  EXPECT_FALSE(FindPutBack({Made(Action::kAlloc, 1000, 100)}, 0, ranges).is_certain);
  EXPECT_FALSE(FindPutBack({Made(Action::kAlloc, 1000, 60), Made(Action::kAlloc, 1060, 30)}, 0, ranges).is_certain);
  EXPECT_FALSE(FindPutBack({Made(Action::kAlloc, 1010, 90)}, 0, ranges).is_certain);
  std::vector<Event> of_two_lines = {Made(Action::kAlloc, 1000, 60), Made(Action::kAlloc, 1060, 40)};
  of_two_lines[1].stack = 7;
  EXPECT_FALSE(FindPutBack(of_two_lines, 0, ranges).is_certain);
}

TEST(SegmentRangesTest, MappedOnesGrowAndAreCut) {
  SegmentRanges ranges{timeline::StartState{}};
  ranges.Apply(Made(Action::kSegmentMap, 1000, 20));
  ranges.Apply(Made(Action::kSegmentMap, 1020, 20));
  EXPECT_EQ(ranges.EndOf(1000), 1040u);
  ranges.Apply(Made(Action::kSegmentUnmap, 1010, 10));
  EXPECT_EQ(ranges.EndOf(1000), 1010u);
  EXPECT_EQ(ranges.EndOf(1020), 1040u);
  ranges.Apply(Made(Action::kSegmentUnmap, 1020, 20));
  EXPECT_EQ(ranges.EndOf(1020), 0u);
}

}  // namespace
}  // namespace ashlar::replay
