// Every recorded snapshot of the shared corpus, replayed warm: all of its allocations and segments must land where
// PyTorch put them. Prints a table, one file and device a line.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "allocator/core/accounting.h"
#include "allocator/device/sim_device.h"
#include "analyzer/formats/input_file.h"
#include "analyzer/formats/torch/torch_snapshot.h"
#include "analyzer/replay/request_replay.h"
#include "analyzer/timeline/observed.h"
#include "tests/analyzer/replay/replayed_snapshot.h"
#include "tests/corpus_files.h"
#include "tests/shared_dir.h"

namespace ashlar::replay {
namespace {

// Counted with CPython's pickle module: alloc and oom entries of all devices of all files.
constexpr std::uint64_t kAllAllocations = 56'590;

absl::StatusOr<trace::Snapshot> ReadSnapshot(const std::string& path) {
  const absl::StatusOr<std::string> bytes = formats::ReadInput(path);
  if (!bytes.ok()) return bytes.status();
  return formats::ReadTorchSnapshot(*bytes);
}

std::set<int> DevicesOf(const trace::Snapshot& snapshot) {
  std::set<int> devices;
  for (const trace::SnapshotSegment& segment : snapshot.segments) devices.insert(segment.device);
  for (std::size_t i = 0; i < snapshot.device_traces.size(); ++i) {
    if (!snapshot.device_traces[i].empty()) devices.insert(static_cast<int>(i));
  }
  return devices;
}

void PrintLine(const std::string& path, int device, const trace::Snapshot& snapshot, const policy::Options& options,
               const ReplayedSnapshot& replayed) {
  const Fidelity& f = replayed.warm.fidelity;
  std::printf("%-52.52s %d %-24.24s %-10s %6llu/%-6llu %5llu/%-5llu %-5s %5llu %5llu %5llu\n",
              std::filesystem::path(path).filename().string().c_str(), device, snapshot.traits.generation.c_str(),
              std::string(policy::CompatName(options.compat)).c_str(), static_cast<unsigned long long>(f.matched),
              static_cast<unsigned long long>(f.total), static_cast<unsigned long long>(f.segments_matched),
              static_cast<unsigned long long>(f.segments_total), f.final_state_matches ? "same" : "OTHER",
              static_cast<unsigned long long>(f.segment_addresses_used),
              static_cast<unsigned long long>(f.tails_inferred),
              static_cast<unsigned long long>(replayed.program.start.unknown_tails));
}

TEST(CorpusReplayTest, EveryAllocationLandsWhereItWasRecorded) {
  const std::optional<std::string> shared = SharedDir();
  if (!shared) GTEST_SKIP() << kNoSharedDir;
  std::printf("%-52s d %-24s %-10s %13s %11s %-5s %5s %5s %5s\n", "file", "generation", "as", "allocations", "segments",
              "end", "addrs", "tails", "open");
  std::uint64_t matched = 0;
  std::uint64_t total = 0;
  for (const std::string& path : SnapshotFiles()) {
    const auto snapshot = ReadSnapshot(path);
    ASSERT_TRUE(snapshot.ok()) << path << ": " << snapshot.status();
    const auto options = RecordedOptions(*snapshot, GuessCompat(*snapshot));
    ASSERT_TRUE(options.ok()) << path << ": " << options.status();
    for (const int device : DevicesOf(*snapshot)) {
      const auto replayed = ReplaySnapshot(*snapshot, *options, {}, device);
      ASSERT_TRUE(replayed.ok()) << path << ": " << replayed.status();
      PrintLine(path, device, *snapshot, *options, *replayed);
      const Fidelity& fidelity = replayed->warm.fidelity;
      EXPECT_TRUE(fidelity.IsExact()) << path << ": " << fidelity.final_state_difference;
      EXPECT_TRUE(replayed->warm.timeline.Validate().ok());
      matched += fidelity.matched;
      total += fidelity.total;
    }
  }
  std::printf("%llu of %llu\n", static_cast<unsigned long long>(matched), static_cast<unsigned long long>(total));
  EXPECT_EQ(matched, kAllAllocations);
  EXPECT_EQ(total, kAllAllocations);
}

// The accounting's parts again, each in a pass of its own over the final blocks.
TEST(CorpusReplayTest, AccountingOfTheFinalStateAddsUp) {
  const std::optional<std::string> shared = SharedDir();
  if (!shared) GTEST_SKIP() << kNoSharedDir;
  for (const std::string& path : SnapshotFiles()) {
    const auto snapshot = ReadSnapshot(path);
    ASSERT_TRUE(snapshot.ok()) << path << ": " << snapshot.status();
    const core::Accounting accounting = core::Account(snapshot->segments);
    std::uint64_t reserved = 0, stranded = 0, whole_free = 0, private_free = 0;
    std::map<trace::BlockState, std::uint64_t> by_state;
    for (const trace::SnapshotSegment& segment : snapshot->segments) {
      reserved += segment.size_bytes;
      std::uint64_t free_bytes = 0;
      for (const trace::SnapshotBlock& block : segment.blocks) {
        by_state[block.state] += block.size_bytes;
        if (block.state == trace::BlockState::kFree) free_bytes += block.size_bytes;
      }
      std::uint64_t& part = segment.pool != PoolId{}           ? private_free
                            : free_bytes == segment.size_bytes ? whole_free
                                                               : stranded;
      part += free_bytes;
    }
    EXPECT_EQ(accounting.SumOfParts(), accounting.reserved_bytes) << path;
    EXPECT_EQ(accounting.reserved_bytes, reserved) << path;
    EXPECT_EQ(accounting.allocated_bytes, by_state[trace::BlockState::kLive]) << path;
    EXPECT_EQ(accounting.pending_bytes, by_state[trace::BlockState::kPending]) << path;
    EXPECT_EQ(accounting.stranded_bytes, stranded) << path;
    EXPECT_EQ(accounting.whole_free_bytes, whole_free) << path;
    EXPECT_EQ(accounting.private_pool_bytes, private_free) << path;
    EXPECT_EQ(stranded + whole_free + private_free, by_state[trace::BlockState::kFree]) << path;
  }
}

// A trace that begins with its program needs no start state: its requests alone, replayed with addresses of the
// simulated device's choice, reach the recorded peaks.
TEST(CorpusReplayTest, ColdReplayReachesTheRecordedPeaks) {
  const std::optional<std::string> shared = SharedDir();
  if (!shared) GTEST_SKIP() << kNoSharedDir;
  const auto snapshot =
      ReadSnapshot(*shared + "/corpus/silmont2000__assignment2-systems__mem_snapshot.b61be409.pickle.gz");
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  const auto options = RecordedOptions(*snapshot, GuessCompat(*snapshot));
  ASSERT_TRUE(options.ok()) << options.status();
  const auto program = MakeProgram({*snapshot, 0}, SizeRuleOf(*options));
  ASSERT_TRUE(program.ok()) << program.status();
  ASSERT_EQ(program->start_count, 0u);
  const auto observed = timeline::MakeObservedTimeline({*snapshot, 0}, SizeRuleOf(*options));
  ASSERT_TRUE(observed.ok()) << observed.status();
  RequestReplay replay({.policy = *options, .device = {}, .memory_fraction = {}});
  ASSERT_TRUE(replay.Run(program->requests).ok());
  const core::Stats& stats = replay.allocator().stats();
  EXPECT_EQ(stats.reserved_bytes.all().peak, static_cast<std::int64_t>(observed->reserved_peak().bytes));
  EXPECT_EQ(stats.allocated_bytes.all().peak, static_cast<std::int64_t>(observed->allocated_peak().bytes));
}

}  // namespace
}  // namespace ashlar::replay
