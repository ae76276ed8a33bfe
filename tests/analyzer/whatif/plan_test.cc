// Plans made of random programs, and allocators that follow them: what keeps to its plan lies where the plan says, what
// leaves it is served all the same, and a recording of either is replayed to the bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "allocator/base/rng.h"
#include "allocator/core/recorder.h"
#include "allocator/device/sim_device.h"
#include "allocator/trace/codec.h"
#include "analyzer/analyses/packing/packing_greedy.h"
#include "analyzer/analyses/plan/make_plan.h"
#include "analyzer/replay/request_replay.h"
#include "analyzer/whatif/plan_choice.h"
#include "tests/allocator/core/held_bytes.h"
#include "tests/allocator/core/recorded_file.h"
#include "tests/analyzer/whatif/request_list.h"

namespace ashlar::tests {
namespace {

// A program of steps of a few kinds, on one stream or two: what stays for good, what a step frees, and what it leaves
// to the next step.
struct SteppedProgram {
  explicit SteppedProgram(std::uint64_t seed, std::size_t kinds = 2) : rng(seed) {
    for (int i = 0; i < 5; ++i) list.Allocate(Bytes());
    std::vector<std::vector<std::uint64_t>> sizes(kinds);
    for (auto& of_kind : sizes) {
      for (int i = 0; i < 30; ++i) of_kind.push_back(Bytes());
    }
    std::vector<std::uint32_t> left;
    for (int step = 0; step < 8; ++step) {
      begins.push_back(static_cast<std::int64_t>(list.trace().requests.size()));
      left = Step(sizes[static_cast<std::size_t>(step) % kinds], seed, left);
    }
  }

  std::uint64_t Bytes() { return rng.Below(5) == 0 ? rng.Between(1, kMiB) : rng.Between(kMiB, 40 * kMiB); }

  // Frees are the same in every step of a kind.
  std::vector<std::uint32_t> Step(const std::vector<std::uint64_t>& sizes, std::uint64_t seed,
                                  const std::vector<std::uint32_t>& left) {
    Rng of_step(seed + sizes.front());
    std::vector<std::uint32_t> live;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      live.push_back(list.Allocate(sizes[i], Stream{of_step.Below(6) == 0 ? 7u : 0u}));
      if (i == 4) {
        for (const std::uint32_t id : left) list.Free(id);
      }
      if (of_step.Below(2) == 0) continue;
      std::swap(live[of_step.Below(live.size())], live.back());
      list.Free(live.back());
      live.pop_back();
    }
    std::vector<std::uint32_t> kept;
    for (const std::uint32_t id : live) {
      if (of_step.Below(8) == 0) {
        kept.push_back(id);
      } else {
        list.Free(id);
      }
    }
    return kept;
  }

  Rng rng;
  RequestList list;
  std::vector<std::int64_t> begins;
};

policy::Options Following(const policy::PlacementPlan& plan) {
  policy::Options options;
  options.plan = std::make_shared<const policy::PlacementPlan>(plan);
  return options;
}

analyses::MadePlan PlanOf(const trace::RequestTrace& trace, const std::vector<std::int64_t>& begins) {
  return analyses::MakePlan(*whatif::LaneRequestsOf(trace, {}), begins, {.target_height = {}, .max_steps = 1'000'000});
}

std::uint64_t PlannedSegmentBytes(const analyses::MadePlan& made) {
  std::uint64_t bytes = 0;
  for (const analyses::PlannedLane& lane : made.lanes) bytes += lane.segment_bytes;
  return bytes;
}

struct CountingSink final : replay::OpSink {
  void SetOp(std::uint64_t) override {}
  void OnEvent(const trace::Event& event, std::uint64_t) override { addresses.push_back(event.address); }
  void OnFact(const trace::AnyFact& fact) override { planned += trace::IsAny<trace::fact::PlacedByPlan>(fact); }
  std::uint64_t planned = 0;
  std::vector<std::uint64_t> addresses;
};

TEST(PlanTest, WhatKeepsToItsPlanLiesWhereThePlanSays) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const SteppedProgram program(seed, 1 + seed % 3);
    const analyses::MadePlan made = PlanOf(program.list.trace(), program.begins);
    std::uint64_t requests = 0;
    for (const analyses::PlannedLane& lane : made.lanes) {
      EXPECT_EQ(lane.planned, lane.requests);
      const bool is_of_every_step = lane.stream == Stream{0} && !lane.is_small;
      EXPECT_LE(lane.step_kinds, 1 + seed % 3);
      if (is_of_every_step) {
        EXPECT_EQ(lane.step_kinds, 1 + seed % 3);
      }
      requests += lane.requests;
    }
    // Also as it is read again.
    const absl::StatusOr<policy::PlacementPlan> plan = policy::ParsePlan(policy::PlanText(made.plan));
    ASSERT_TRUE(plan.ok()) << plan.status();
    replay::RequestReplay replay({Following(*plan), {.capacity_bytes = replay::kAmpleBytes}, {}});
    CountingSink sink;
    ASSERT_EQ(replay.Run(program.list.trace(), &sink), absl::OkStatus());
    EXPECT_EQ(sink.planned, requests) << "seed " << seed << ": every request is placed by the plan";
    const core::Stats stats = replay.allocator().stats();
    EXPECT_EQ(static_cast<std::uint64_t>(stats.reserved_bytes.all().peak), PlannedSegmentBytes(made));
    EXPECT_EQ(replay.allocator().Validate(), absl::OkStatus());
  }
}

TEST(PlanTest, WhatLeavesItsPlanIsServedAllTheSame) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const SteppedProgram program(seed);
    const analyses::MadePlan made = PlanOf(program.list.trace(), program.begins);
    const SteppedProgram other(seed + 1000);
    const trace::RequestTrace random = RandomRequests(seed, 800, 20, 60 * kMiB);
    for (const trace::RequestTrace* trace : {&other.list.trace(), &random}) {
      replay::RequestReplay without({{}, {.capacity_bytes = replay::kAmpleBytes}, {}});
      ASSERT_EQ(without.Run(*trace), absl::OkStatus());
      const auto peak = static_cast<std::uint64_t>(without.allocator().stats().reserved_bytes.all().peak);
      replay::RequestReplay replay({Following(made.plan), {.capacity_bytes = peak + PlannedSegmentBytes(made)}, {}});
      ASSERT_EQ(replay.Run(*trace), absl::OkStatus());
      EXPECT_EQ(replay.allocator().stats().num_ooms, 0u) << "seed " << seed;
      EXPECT_EQ(replay.allocator().Validate(), absl::OkStatus());
    }
  }
}

TEST(PlanTest, WhereTheDeviceHasNoPlannedSegmentTheRulesServe) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const SteppedProgram program(seed);
    analyses::MadePlan made = PlanOf(program.list.trace(), program.begins);
    for (policy::LanePlan& lane : made.plan.lanes) lane.segment_bytes = kGiB * 100;
    CountingSink with, without;
    replay::RequestReplay a({Following(made.plan), {.capacity_bytes = 4 * kGiB}, {}});
    replay::RequestReplay b({{}, {.capacity_bytes = 4 * kGiB}, {}});
    ASSERT_EQ(a.Run(program.list.trace(), &with), absl::OkStatus());
    ASSERT_EQ(b.Run(program.list.trace(), &without), absl::OkStatus());
    EXPECT_EQ(with.addresses, without.addresses);
  }
}

// Recorded from the first request on, or from somewhere in the middle.
TEST(PlanTest, RecordingsAreReplayedToTheBit) {
  const std::string path = core::TempFile("planned");
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const SteppedProgram program(seed);
    const SteppedProgram other(seed + 1);
    const analyses::MadePlan made = PlanOf(program.list.trace(), program.begins);
    const trace::RequestTrace& trace = seed % 3 == 2 ? other.list.trace() : program.list.trace();
    device::SimDevice device({.capacity_bytes = seed % 5 == 4 ? PlannedSegmentBytes(made) + 30 * kMiB : 64 * kGiB});
    core::CachingAllocator allocator(&device, Following(made.plan));
    allocator.SetFailureReports(false);
    std::unique_ptr<core::Recorder> recorder;
    std::map<std::uint32_t, core::Block*> blocks;
    for (std::size_t i = 0; i < trace.requests.size(); ++i) {
      if (i == (seed % 2) * trace.requests.size() / 3) {
        recorder = *core::Recorder::ToFile(&allocator, path, {.overwrites = true});
      }
      const trace::Op& op = trace.requests[i];
      if (op.kind == trace::OpKind::kAlloc) {
        const absl::StatusOr<core::Block*> block = allocator.Allocate(op.bytes, op.stream);
        if (block.ok()) blocks[op.id] = *block;
      } else if (const auto at = blocks.find(op.id); at != blocks.end()) {
        allocator.Free(at->second);
        blocks.erase(at);
      }
    }
    ASSERT_EQ(recorder->Finish(), absl::OkStatus());
    for (const auto& [id, block] : blocks) allocator.Free(block);
    const absl::StatusOr<trace::Snapshot> recording = trace::Decode(core::BytesOf(path));
    ASSERT_TRUE(recording.ok()) << recording.status();
    SCOPED_TRACE("seed " + std::to_string(seed));
    core::ExpectReplaysExactly(*recording);
    if (testing::Test::HasFailure()) break;
  }
  std::remove(path.c_str());
}

// Each call of the device fails once: nothing leaks, and the next request works.
TEST(PlanTest, ACallThatFailsIsOvercome) {
  for (const absl::Status& failure : {absl::ResourceExhaustedError("injected"), absl::InternalError("injected")}) {
    for (std::uint64_t call = 0; call < 12; ++call) {
      const SteppedProgram program(call);
      const analyses::MadePlan made = PlanOf(program.list.trace(), program.begins);
      device::SimDevice device({.capacity_bytes = 64 * kGiB});
      core::CachingAllocator allocator(&device, Following(made.plan));
      allocator.SetFailureReports(false);
      device.FailCall(call, failure);
      std::map<std::uint32_t, core::Block*> blocks;
      for (const trace::Op& op : program.list.trace().requests) {
        if (op.kind == trace::OpKind::kAlloc) {
          absl::StatusOr<core::Block*> block = allocator.Allocate(op.bytes, op.stream);
          if (!block.ok()) block = allocator.Allocate(op.bytes, op.stream);
          ASSERT_TRUE(block.ok()) << block.status();
          blocks[op.id] = *block;
        } else {
          allocator.Free(blocks.at(op.id));
          blocks.erase(op.id);
        }
        ASSERT_EQ(device.used_bytes(), core::HeldBytes(core::Inspection(allocator).heap())) << "call " << call;
      }
      EXPECT_EQ(allocator.Validate(), absl::OkStatus());
      for (const auto& [id, block] : blocks) allocator.Free(block);
      allocator.EmptyCache();
      EXPECT_EQ(device.used_bytes(), 0u);
    }
  }
}

// A cache that is emptied gives the planned segments back; the next requests have them again.
TEST(PlanTest, ThePlannedSegmentComesBack) {
  const SteppedProgram program(5);
  const analyses::MadePlan made = PlanOf(program.list.trace(), program.begins);
  device::SimDevice device({.capacity_bytes = 64 * kGiB});
  core::CachingAllocator allocator(&device, Following(made.plan));
  for (int round = 0; round < 3; ++round) {
    std::uint64_t expected = 0;
    for (const policy::LanePlan& lane : made.plan.lanes) {
      if (lane.use == policy::LaneUse::kDefaultStream) expected += lane.segment_bytes;
    }
    core::Block* large = *allocator.Allocate(3 * kMiB, Stream{0});
    core::Block* small = *allocator.Allocate(3 * kKiB, Stream{0});
    EXPECT_EQ(device.used_bytes(), expected);
    allocator.Free(large);
    allocator.Free(small);
    allocator.EmptyCache();
    EXPECT_EQ(device.used_bytes(), 0u);
    EXPECT_EQ(allocator.Validate(), absl::OkStatus());
  }
}

// A lane's pages serve no other lane at that time, and any other before and after.
TEST(PageFloorTest, EachLaneHasWholePages) {
  using analyses::LaneRequests;
  const std::vector<LaneRequests> lanes = {
      {Stream{0}, {}, true, {{0, 10, 512}, {2, 4, kMiB}}},
      {Stream{0}, {}, false, {{1, 5, 3 * kMiB}}},
      {Stream{7}, {}, false, {{5, 8, 3 * kMiB}, {6, 7, kMiB}}},
  };
  EXPECT_EQ(analyses::PageFloor(lanes, 2 * kMiB), 6 * kMiB);
  EXPECT_EQ(analyses::PageFloor(lanes, 512), 4 * kMiB + 512);
  EXPECT_EQ(analyses::PageFloor({}, 2 * kMiB), 0u);
}

// Slots whose lives meet have ranges apart, and what one offset can serve is not higher than it must be.
TEST(PackSlotsTest, SlotsThatComeBackHaveOneOffset) {
  using analyses::Slot;
  const std::vector<Slot> slots = {
      {4, {{0, 10}, {20, 30}}}, {2, {{10, 20}, {30, 40}}}, {3, {{0, 40}}}, {2, {{15, 25}}}};
  const analyses::Packing packing = analyses::PackSlots(slots, {.target_height = {}, .max_steps = 1000});
  EXPECT_EQ(packing.lower_bound, 9u);
  EXPECT_EQ(packing.height, 9u);
  EXPECT_TRUE(analyses::PackSlots({}, {}).offsets.empty());
}

}  // namespace
}  // namespace ashlar::tests
