// DumpSnapshot: the state as it is, in a file that explains who holds the memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "allocator/base/rng.h"
#include "allocator/core/nvtx_pools.h"
#include "allocator/core/recorder.h"
#include "allocator/device/sim_device.h"
#include "allocator/trace/codec.h"
#include "commands/explain/explain.h"
#include "commands/explain/explain_report.h"
#include "tests/allocator/core/recorded_file.h"
#include "tests/allocator/trace/printed_snapshot.h"

namespace ashlar::core {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

class DumpSnapshotTest : public testing::Test {
 protected:
  DumpSnapshotTest() : folder_(TempFile(testing::UnitTest::GetInstance()->current_test_info()->name())) {
    fs::create_directories(folder_);
  }
  ~DumpSnapshotTest() override { fs::remove_all(folder_); }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  const std::string folder_;
};

answers::Explanation Explained(const std::string& path) {
  const absl::StatusOr<trace::Snapshot> read = trace::Decode(BytesOf(path));
  EXPECT_TRUE(read.ok()) << read.status();
  if (!read.ok()) return {};
  EXPECT_TRUE(read->notes.empty());
  absl::StatusOr<answers::Explanation> out = answers::ExplainSnapshot(*read, {});
  EXPECT_TRUE(out.ok()) << out.status();
  return out.ok() ? *std::move(out) : answers::Explanation{};
}

// Bytes and blocks by label.
std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> Holders(const answers::Explanation& explanation) {
  std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> out;
  for (const analyses::LabelledStack& row : explanation.memory.holders.stacks) out[row.label] = {row.bytes, row.blocks};
  return out;
}

void TrainAStep(CachingAllocator& allocator, std::vector<Block*>& live) {
  live.push_back(*allocator.Allocate(7 * kMiB, Stream{0}));
  ASHLAR_SCOPE("forward");
  for (int i = 0; i < 3; ++i) {
    ASHLAR_SCOPE("layer");
    live.push_back(*allocator.Allocate(2 * kMiB, Stream{0}));
  }
  for (int i = 0; i < 2000; ++i) allocator.Free(*allocator.Allocate(4 * kKiB, Stream{0}));
}

// By a recorder into a file, by a ring that has forgotten the events, and by one behind another sink.
TEST_F(DumpSnapshotTest, WhatARecorderSawHasANameInTheFile) {
  for (const char* kind : {"file", "ring", "behind"}) {
    SCOPED_TRACE(kind);
    device::SimDevice device({.capacity_bytes = kGiB});
    CachingAllocator allocator(&device, {});
    Block* const older = *allocator.Allocate(3 * kMiB, Stream{5});
    const std::unique_ptr<Recorder> recorder =
        kind == std::string("file") ? *Recorder::ToFile(&allocator, Path("recording"))
                                    : *Recorder::Ring(&allocator, {.ring_bytes = 1024, .chunk_bytes = 1024});
    NvtxPools pools(recorder.get());
    if (kind == std::string("behind")) allocator.SetSink(&pools);
    std::vector<Block*> live;
    TrainAStep(allocator, live);
    ASSERT_EQ(allocator.DumpSnapshot(Path("state")), absl::OkStatus());
    const answers::Explanation explanation = Explained(Path("state"));
    const std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> expected = {
        {"layer < forward", {6 * kMiB, 3}}, {"no stack recorded", {10 * kMiB, 2}}};
    EXPECT_EQ(Holders(explanation), expected);
    EXPECT_TRUE(explanation.memory.holders.sizes.empty());
    const std::string text = report::ToText(explanation);
    EXPECT_THAT(text, HasSubstr("WHO HOLDS IT   (live blocks by the line that allocated them, at the same moment)\n"));
    EXPECT_THAT(text, HasSubstr("     6.00 MiB  in      3 blocks  layer < forward\n"));
    if (kind == std::string("ring")) {  // its own file has the names as well
      ASSERT_EQ(recorder->Write(Path("ring")), absl::OkStatus());
      EXPECT_EQ(Holders(Explained(Path("ring")))["layer < forward"], std::pair(6 * kMiB, std::uint64_t{3}));
    }
    allocator.Free(older);
    fs::remove(Path("recording"));
  }
}

TEST_F(DumpSnapshotTest, WithoutNamesItIsBySizeAndStream) {
  device::SimDevice device({.capacity_bytes = kGiB});
  CachingAllocator allocator(&device, {});
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(allocator.Allocate(30 * kMiB, Stream{7}).ok());
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(allocator.Allocate(30 * kMiB, Stream{0}).ok());
  ASSERT_TRUE(allocator.Allocate(100, Stream{0}).ok());
  allocator.Free(*allocator.Allocate(50 * kMiB, Stream{0}));
  ASSERT_EQ(allocator.DumpSnapshot(Path("state")), absl::OkStatus());
  const answers::Explanation explanation = Explained(Path("state"));
  EXPECT_TRUE(explanation.memory.holders.stacks.empty());
  EXPECT_EQ(explanation.memory.moment, "the moment of the snapshot, without a history");
  EXPECT_EQ(explanation.memory.accounting.total_bytes, kGiB);
  EXPECT_EQ(explanation.memory.accounting.whole_free_bytes, 50 * kMiB);
  EXPECT_THAT(
      report::ToText(explanation),
      HasSubstr("\nWHO HOLDS IT   (live blocks by size and stream, at the same moment: nothing in the input names "
                "them)\n"
                "    90.00 MiB  in      3 blocks  of 30.00 MiB, stream 7\n"
                "    60.00 MiB  in      2 blocks  of 30.00 MiB, stream 0\n"
                "        512 B  in      1 blocks  of 512 B, stream 0\n"));
}

TEST_F(DumpSnapshotTest, TheFileHasTheWholeStateAndNoCallIsMade) {
  for (const char* conf :
       {"", "max_split_size_mb:21", "expandable_segments:True", "garbage_collection_threshold:0.8"}) {
    SCOPED_TRACE(conf);
    device::SimDevice device({.capacity_bytes = kGiB});
    CachingAllocator allocator(&device, Options(conf));
    Rng rng(3);
    std::vector<Block*> live;
    for (int i = 0; i < 400; ++i) {
      const std::uint64_t bytes = 1 + (rng.Below(3) == 0 ? rng.Below(20 * kMiB) : rng.Below(200 * kKiB));
      const auto block = allocator.Allocate(bytes, Stream{rng.Below(3)}, rng.Below(9) == 0 ? PoolId{1, 0} : PoolId{});
      if (block.ok()) live.push_back(*block);
      if (rng.Below(2) != 0 || live.empty()) continue;
      std::swap(live[rng.Below(live.size())], live.back());
      if (rng.Below(3) == 0) allocator.RecordStream(live.back(), Stream{9});
      allocator.Free(live.back());
      live.pop_back();
    }
    const device::DeviceCalls before = device.calls();
    ASSERT_EQ(allocator.DumpSnapshot(Path("state")), absl::OkStatus());
    EXPECT_EQ(device.calls().segment_alloc + device.calls().segment_free + device.calls().query_event,
              before.segment_alloc + before.segment_free + before.query_event);
    const absl::StatusOr<trace::Snapshot> read = trace::Decode(BytesOf(Path("state")));
    ASSERT_TRUE(read.ok()) << read.status();
    trace::Snapshot here;
    here.segments = allocator.Segments();
    EXPECT_EQ(trace::PrintedSegments(*read), trace::PrintedSegments(here));
    EXPECT_EQ(read->recording->reservations.empty(), absl::string_view(conf) != "expandable_segments:True");
    EXPECT_EQ(Explained(Path("state")).memory.accounting.allocated_bytes,
              static_cast<std::uint64_t>(allocator.stats().allocated_bytes.all().current));
  }
}

TEST_F(DumpSnapshotTest, WhatCannotBeWrittenIsOneLineAndLeavesNothing) {
  device::SimDevice device({.capacity_bytes = kGiB});
  CachingAllocator allocator(&device, {});
  ASSERT_TRUE(allocator.Allocate(30 * kMiB, Stream{7}).ok());
  const std::string missing = Path("no/folder/state");
  absl::Status status = allocator.DumpSnapshot(missing);
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message(), missing + ": cannot be written: No such file or directory");
  status = allocator.DumpSnapshot("/dev/full");
  EXPECT_THAT(std::string(status.message()), HasSubstr("/dev/full: cannot be written: No space left on device"));
  const std::unique_ptr<Recorder> recorder = *Recorder::ToFile(&allocator, Path("recording"));
  status = allocator.DumpSnapshot(Path("recording"));
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()), Not(HasSubstr("\n")));
  ASSERT_EQ(recorder->Finish(), absl::OkStatus());
  EXPECT_TRUE(trace::Decode(BytesOf(Path("recording")))->recording->is_complete);

  std::ofstream(Path("state")) << "of last week";
  ASSERT_EQ(allocator.DumpSnapshot(Path("state")), absl::OkStatus());
  EXPECT_TRUE(trace::Decode(BytesOf(Path("state"))).ok());
  ASSERT_EQ(allocator.DumpSnapshot(Path("state_%p")), absl::OkStatus());
  EXPECT_TRUE(fs::exists(Path("state_" + std::to_string(getpid()))));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 3) << "no temporary file is left";
}

// Each file is one moment's, and whole, whatever other threads do.
TEST_F(DumpSnapshotTest, AnyThreadMayAskAtAnyTime) {
  device::SimDevice device({.capacity_bytes = kGiB});
  CachingAllocator allocator(&device, {});
  std::atomic<bool> is_over{false};
  std::vector<std::thread> threads;
  for (std::uint64_t i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      while (!is_over) allocator.Free(*allocator.Allocate(100 * kKiB, Stream{i}));
    });
  }
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      for (int dump = 0; dump < 50; ++dump) EXPECT_EQ(allocator.DumpSnapshot(Path("state")), absl::OkStatus());
    });
  }
  threads[3].join();
  threads[4].join();
  is_over = true;
  for (int i = 0; i < 3; ++i) threads[static_cast<std::size_t>(i)].join();
  EXPECT_EQ(Explained(Path("state")).memory.accounting.reserved_bytes, 3 * 2 * kMiB);
}

}  // namespace
}  // namespace ashlar::core
