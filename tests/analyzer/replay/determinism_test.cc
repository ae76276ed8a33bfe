// The same snapshot gives the same replay, in this process and in every build; and a program recorded from its start
// reaches the same peaks when only its requests are replayed.
#include <gtest/gtest.h>

#include <cstdint>

#include "allocator/device/sim_device.h"
#include "analyzer/replay/request_replay.h"
#include "analyzer/timeline/observed.h"
#include "tests/analyzer/replay/random_program.h"
#include "tests/analyzer/replay/recorder.h"
#include "tests/analyzer/replay/replayed_snapshot.h"

namespace ashlar::replay {
namespace {

Program Synthetic(std::uint64_t seed, const char* conf, std::uint64_t capacity_bytes) {
  Program program{.compat = policy::Compat::kTorch26, .conf = conf, .capacity_bytes = capacity_bytes};
  Rng rng(seed);
  AddRandomOps({.op_count = 400, .streams = 2, .pools = 2, .record_stream_in_1000 = 100}, rng, program);
  return program;
}

void ExpectFingerprint(const Program& program, std::uint64_t expected) {
  const trace::Snapshot snapshot = MakeSnapshot(Record(program), {});
  for (int run = 0; run < 2; ++run) {
    const auto replayed = ReplaySnapshot(snapshot, program.Options(), {.device_total_bytes = program.capacity_bytes});
    ASSERT_TRUE(replayed.ok()) << replayed.status();
    EXPECT_TRUE(replayed->warm.fidelity.IsExact());
    EXPECT_EQ(FingerprintOf(replayed->warm.timeline), expected) << "run " << run;
  }
}

TEST(DeterminismTest, FingerprintsAreTheSameInEveryBuild) {
  ExpectFingerprint(Synthetic(1, "max_split_size_mb:24", 200 * kMiB), 841474504773949272u);
  ExpectFingerprint(Synthetic(2, "expandable_segments:True", 300 * kMiB), 1231540345960236288u);
}

TEST(DeterminismTest, ColdReplayOfAWholeHistoryReachesTheSamePeaks) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    const Program program = Synthetic(seed, seed % 2 == 0 ? "roundup_power2_divisions:4" : "", 16 * kGiB);
    const Recording recording = Record(program);
    const trace::Snapshot snapshot = MakeSnapshot(recording, {});
    const auto made = MakeProgram({snapshot, 0}, SizeRuleOf(program.Options()));
    ASSERT_TRUE(made.ok()) << made.status();
    const auto observed = timeline::MakeObservedTimeline({snapshot, 0}, SizeRuleOf(program.Options()));
    ASSERT_TRUE(observed.ok()) << observed.status();
    device::SimDeviceOptions device;
    device.capacity_bytes = program.capacity_bytes;
    RequestReplay replay({.policy = program.Options(), .device = device, .memory_fraction = {}});
    ASSERT_TRUE(replay.Run(made->requests).ok());
    const core::Stats& cold = replay.allocator().stats();
    EXPECT_EQ(cold.reserved_bytes.all().peak, recording.stats.reserved_bytes.all().peak);
    EXPECT_EQ(cold.allocated_bytes.all().peak, recording.stats.allocated_bytes.all().peak);
    EXPECT_EQ(static_cast<std::int64_t>(observed->reserved_peak().bytes), recording.stats.reserved_bytes.all().peak);
    EXPECT_EQ(static_cast<std::int64_t>(observed->allocated_peak().bytes), recording.stats.allocated_bytes.all().peak);
  }
}

}  // namespace
}  // namespace ashlar::replay
