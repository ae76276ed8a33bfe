#include "analyzer/tuner/look.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "allocator/base/units.h"
#include "tests/analyzer/tuner/epochs.h"

namespace ashlar::tuner {
namespace {

using testing::HasSubstr;
using tests::EpochProgram;

TEST(LookTest, AGainIsLessOfSomethingAndMoreOfNothing) {
  const Figures now{.peak_reserved_bytes = 1000, .failures = 2, .retries = 3};
  EXPECT_TRUE(Gains({950, 2, 3}, now, 0.05));
  EXPECT_FALSE(Gains({951, 2, 3}, now, 0.05));
  EXPECT_TRUE(Gains({1500, 1, 9}, now, 0.05)) << "a request that does not fail is worth memory";
  EXPECT_FALSE(Gains({100, 3, 0}, now, 0.05));
  EXPECT_FALSE(Gains({100, 2, 4}, now, 0.05));
  EXPECT_TRUE(Gains({1000, 2, 2}, now, 0.05));
  EXPECT_FALSE(Gains({1001, 2, 2}, now, 0.05));
  EXPECT_EQ(InsteadOf({950 * kMiB, 2, 2}, {1000 * kMiB, 2, 3}),
            "950.00 MiB reserved instead of 1000.00 MiB (-5.0 %), 2 instead of 3 retries");
}

// What cannot be switched to is tried too: in a memory that fills, pages move where segments cannot.
TEST(LookTest, SettingsOfTheStartAreAdvisedOnly) {
  EpochProgram program("roundup_power2_divisions:1");
  std::vector<std::uint64_t> ends;
  for (int epoch = 0; epoch < 4; ++epoch) {
    program.Epoch([](std::uint64_t i) { return (i % 2 == 0 ? 33 : 66) * kMiB; });
    ends.push_back(program.recorder().event_count());
  }
  const absl::StatusOr<Look> look = LookAt(*program.recorder().Bytes(), {.step_ends = ends});
  ASSERT_TRUE(look.ok()) << look.status();
  EXPECT_EQ(look->steps, 4u);
  EXPECT_EQ(look->conf, "roundup_power2_divisions:1");
  ASSERT_TRUE(look->live.has_value() && look->start.has_value());
  EXPECT_FALSE(testing::Matches(HasSubstr("expandable"))(look->live->conf));
  EXPECT_LE(look->start->figures.peak_reserved_bytes, look->live->figures.peak_reserved_bytes);
}

// A ring has dropped the first steps, and the window begins in the middle of its events.
TEST(LookTest, TheRingMayBeginAnywhere) {
  const std::unique_ptr<Device> device = MakeSimulatedDevice({.capacity_bytes = 16 * kGiB});
  Allocator allocator(device.get());
  const std::unique_ptr<Recorder> ring = *Recorder::Ring(allocator, {.ring_bytes = 16 * kKiB, .chunk_bytes = 1024});
  std::vector<std::uint64_t> ends;
  for (int epoch = 0; epoch < 60; ++epoch) {
    if (epoch % 3 == 0) allocator.EmptyCache();
    for (std::uint64_t i = 0; i < 40; ++i) allocator.Free(*allocator.Allocate((33 + i % 24) * kMiB, Stream{0}));
    ends.push_back(ring->event_count());
  }
  const absl::StatusOr<Look> look = LookAt(*ring->Bytes(), {.step_ends = ends});
  ASSERT_TRUE(look.ok()) << look.status();
  EXPECT_GT(look->steps, 2u);
  EXPECT_LT(look->steps, 60u);
  EXPECT_EQ(look->finding, LookFinding::kLive) << look->reason;
}

// Retries that the settings cause are a loss that the replay sees: the device is as large as its refusals say.
TEST(LookTest, RetriesInASmallMemoryAreCounted) {
  EpochProgram program("", 400 * kMiB);
  std::vector<std::uint64_t> ends;
  for (int epoch = 0; epoch < 4; ++epoch) {
    program.GrowingEpoch();
    ends.push_back(program.recorder().event_count());
  }
  ASSERT_GT(program.allocator().stats().num_alloc_retries, 0u);
  const absl::StatusOr<Look> look = LookAt(*program.recorder().Bytes(), {.step_ends = ends});
  ASSERT_TRUE(look.ok()) << look.status();
  EXPECT_EQ(look->now.retries, program.allocator().stats().num_alloc_retries);
  EXPECT_EQ(look->finding, LookFinding::kLive) << look->reason;
  EXPECT_EQ(look->live->figures.retries, 0u);
}

TEST(LookTest, WhatIsNoRecordingIsAnError) {
  EXPECT_FALSE(LookAt("", {}).ok());
  EXPECT_FALSE(LookAt("ASHLARTR", {}).ok());
}

}  // namespace
}  // namespace ashlar::tuner
