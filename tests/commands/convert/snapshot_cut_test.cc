// Cut snapshots fit together, whatever is cut: each can be observed, and its blocks are those that were asked for.
#include "commands/convert/snapshot_cut.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "analyzer/formats/input_file.h"
#include "analyzer/formats/torch/torch_snapshot.h"
#include "commands/shared/traced_run.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/corpus_files.h"

namespace ashlar::answers {
namespace {

constexpr char kCutExample[] = ASHLAR_SOURCE_DIR "/docs/examples/training_oom.pickle";

absl::StatusOr<trace::Snapshot> SnapshotOf(const std::string& path) {
  const absl::StatusOr<std::string> bytes = formats::ReadInput(path);
  if (!bytes.ok()) return bytes.status();
  return formats::ReadTorchSnapshot(*bytes);
}

// Bytes of live blocks by their request.
std::map<std::uint64_t, std::uint64_t> LiveRequests(const trace::Snapshot& snapshot, std::uint64_t least) {
  std::map<std::uint64_t, std::uint64_t> out;
  for (const trace::SnapshotSegment& segment : snapshot.segments) {
    for (const trace::SnapshotBlock& block : segment.blocks) {
      const std::uint64_t asked = block.requested_bytes.value_or(block.size_bytes);
      if (block.state == trace::BlockState::kLive && asked >= least) out[asked] += block.size_bytes;
    }
  }
  return out;
}

void ExpectFits(const trace::Snapshot& snapshot, const CutRule& rule) {
  const SnapshotCut cut = CutSnapshot(snapshot, rule);
  for (const trace::SnapshotSegment& segment : cut.snapshot.segments) {
    std::uint64_t at = segment.address;
    for (const trace::SnapshotBlock& block : segment.blocks) {
      ASSERT_EQ(block.address, at);  // they tile it
      at += block.size_bytes;
    }
    ASSERT_EQ(at, segment.address + segment.size_bytes);
  }
  const absl::StatusOr<ObservedRun> run = ObserveSnapshot(cut.snapshot, {});
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_TRUE(run->timeline.Validate().ok());
  EXPECT_TRUE(formats::ReadTorchSnapshot(formats::WriteTorchSnapshot(cut.snapshot)).ok());
}

TEST(SnapshotCutTest, LargeBlocksStayAndOthersAreFree) {
  const absl::StatusOr<trace::Snapshot> snapshot = SnapshotOf(kCutExample);
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  for (const std::uint64_t least :
       {std::uint64_t{1}, std::uint64_t{1} << 20, std::uint64_t{50} << 20, ~std::uint64_t{0}}) {
    const SnapshotCut cut = CutSnapshot(*snapshot, {.least_bytes = least});
    EXPECT_EQ(LiveRequests(cut.snapshot, 0), LiveRequests(*snapshot, least)) << least;
    ExpectFits(*snapshot, {.least_bytes = least});
  }
  EXPECT_EQ(CutSnapshot(*snapshot, {.least_bytes = 1}).events_gone, 0u);
}

TEST(SnapshotCutTest, OfStacksThoseWithTheText) {
  const absl::StatusOr<trace::Snapshot> snapshot = SnapshotOf(kCutExample);
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  ExpectFits(*snapshot, {.stack_text = "adamw.py:112 step"});
  const SnapshotCut none = CutSnapshot(*snapshot, {.stack_text = "no such line"});
  EXPECT_TRUE(LiveRequests(none.snapshot, 0).empty());
  EXPECT_EQ(none.snapshot.segments.size(), snapshot->segments.size());
}

// Each device's addresses are its own, and may be the same.
TEST(SnapshotCutTest, OneDevice) {
  trace::Snapshot snapshot;
  snapshot.device_traces.resize(2);
  for (int device = 0; device < 2; ++device) {
    trace::SnapshotSegment& segment = snapshot.segments.emplace_back();
    segment.device = device;
    segment.address = 0x1000;
    segment.size_bytes = 2 << 20;
    trace::SnapshotBlock& block = segment.blocks.emplace_back();
    block.address = 0x1000;
    block.size_bytes = 2 << 20;
    block.state = trace::BlockState::kLive;
    std::vector<trace::Event> events(1);
    events[0].action = trace::Action::kAlloc;
    events[0].address = 0x1000;
    events[0].size_bytes = device == 0 ? 100 : 2 << 20;
    snapshot.device_traces[static_cast<std::size_t>(device)] = events;
  }
  const SnapshotCut of_one = CutSnapshot(snapshot, {.device = 1});
  ASSERT_EQ(of_one.snapshot.segments.size(), 1u);
  EXPECT_EQ(of_one.snapshot.segments[0].device, 1);
  EXPECT_EQ(of_one.events_gone, 1u);
  const SnapshotCut large = CutSnapshot(snapshot, {.least_bytes = 1 << 20});
  EXPECT_EQ(large.snapshot.segments[0].blocks[0].state, trace::BlockState::kFree);
  EXPECT_EQ(large.snapshot.segments[1].blocks[0].state, trace::BlockState::kLive);
  EXPECT_EQ(large.blocks_gone, 1u);
}

TEST(SnapshotCutTest, PublicSnapshotsFitTogetherWhenCut) {
  if (!SharedDir().has_value()) GTEST_SKIP() << kNoSharedDir;
  const std::vector<std::string> files = SnapshotFiles();
  for (std::size_t i = 0; i < files.size(); i += 4) {
    SCOPED_TRACE(files[i]);
    const absl::StatusOr<trace::Snapshot> snapshot = SnapshotOf(files[i]);
    if (!snapshot.ok() || !ObserveSnapshot(*snapshot, {}).ok()) continue;
    ExpectFits(*snapshot, {.least_bytes = 4 << 20});
    ExpectFits(*snapshot, {.stack_text = "forward"});
  }
}

}  // namespace
}  // namespace ashlar::answers
