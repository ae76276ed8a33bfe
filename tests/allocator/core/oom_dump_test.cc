// The state written at an out-of-memory error: what explain reads from it is what the error said, it costs the device
// nothing, and nothing on the disk is lost by it.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "allocator/base/rng.h"
#include "allocator/core/caching_allocator.h"
#include "allocator/core/failure_reports.h"
#include "allocator/core/nvtx_pools.h"
#include "allocator/core/recorder.h"
#include "allocator/device/sim_device.h"
#include "allocator/policy/size_rule.h"
#include "allocator/trace/codec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/allocator/core/expect_same_failure.h"

namespace ashlar::tests {
namespace {

namespace fs = std::filesystem;
using core::CachingAllocator;

// The lines that begin with what is written where.
std::string PathIn(const absl::Status& status) {
  const std::vector<std::string> lines = absl::StrSplit(status.message(), '\n');
  const std::vector<std::string> parts = absl::StrSplit(lines.back(), "state written: ashlar explain ");
  return parts.size() == 2 && parts[0].empty() ? parts[1] : "";
}

std::string BytesOf(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

absl::StatusOr<answers::Explanation> ExplainFile(const std::string& path) {
  const absl::StatusOr<trace::Snapshot> read = trace::Decode(BytesOf(path));
  if (!read.ok()) return read.status();
  return answers::ExplainSnapshot(*read, {});
}

class OomDumpTest : public testing::Test {
 protected:
  OomDumpTest()
      : folder_(absl::StrCat(testing::TempDir(), "/oom_dump_", getpid(), "_",
                             testing::UnitTest::GetInstance()->current_test_info()->name())) {
    fs::create_directories(folder_);
    setenv(core::kOomDumpVariable, folder_.c_str(), 1);
  }
  ~OomDumpTest() override {
    unsetenv(core::kOomDumpVariable);
    fs::remove_all(folder_);
  }

  std::size_t FileCount() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  const std::string folder_;
};

// Blocks of every size on three streams, a third of them freed again.
void FillUp(CachingAllocator& allocator, std::uint64_t seed, int blocks) {
  Rng rng(seed);
  std::vector<core::Block*> live;
  for (int i = 0; i < blocks; ++i) {
    const std::uint64_t bytes = 1 + (rng.Below(3) == 0 ? rng.Below(30 * kMiB) : rng.Below(200 * kKiB));
    const auto block = allocator.Allocate(bytes, Stream{rng.Below(3)}, rng.Below(9) == 0 ? PoolId{1, 0} : PoolId{});
    if (block.ok()) live.push_back(*block);
  }
  for (std::size_t i = 0; i < live.size(); i += 3) allocator.Free(live[i]);
}

core::FailedAllocation Asked(const CachingAllocator& allocator, device::SimDevice& device, std::uint64_t bytes) {
  core::FailedAllocation out;
  out.request_bytes = bytes;
  out.rounded_bytes = policy::RoundedBytes(bytes, allocator.options());
  out.segment_bytes = policy::SegmentBytes(out.rounded_bytes, allocator.options());
  out.device_free_bytes = device.GetMemoryInfo().free_bytes;
  out.device_total_bytes = device.GetMemoryInfo().total_bytes;
  out.limit_bytes = allocator.limit_bytes();
  return out;
}

TEST_F(OomDumpTest, ExplainReadsFromTheFileWhatTheErrorSaid) {
  for (const char* conf : {"", "max_split_size_mb:24", "expandable_segments:True", "policy:ashlar",
                           "per_process_memory_fraction:0.7", "throw_on_cudamalloc_oom:True"}) {
    SCOPED_TRACE(conf);
    device::SimDevice device({.capacity_bytes = kGiB});
    CachingAllocator allocator(&device, *policy::ParseConf(conf, policy::Compat::kTorch210, policy::Keys::kAshlar));
    allocator.SetFailureReports(false);
    FillUp(allocator, 5, 120);
    allocator.SetFailureReports(true);
    const absl::Status status = allocator.Allocate(800 * kMiB - 300, Stream{0}).status();
    const std::string path = PathIn(status);
    ASSERT_NE(path, "") << status;
    EXPECT_THAT(path, testing::StartsWith(absl::StrCat(folder_, "/ashlar_oom_", getpid(), "_")));
    EXPECT_LE(std::vector<std::string>(absl::StrSplit(status.message(), '\n')).size(), 12u);
    const absl::StatusOr<answers::Explanation> explained = ExplainFile(path);
    ASSERT_TRUE(explained.ok()) << explained.status();
    ExpectSameFailure(
        core::MakeOomReport(Asked(allocator, device, 800 * kMiB - 300), allocator.Segments(), allocator.options()),
        *explained);
  }
  EXPECT_EQ(FileCount(), 6u);
}

// The failing call makes the same device calls with and without the dump; the file of 100,000 blocks is whole.
TEST_F(OomDumpTest, AHundredThousandBlocksCostTheDeviceNothing) {
  device::SimDevice device({.capacity_bytes = 2 * kGiB});
  CachingAllocator allocator(&device, {});
  constexpr std::uint64_t kBlocks = 100'000;
  std::vector<core::Block*> blocks;
  for (std::uint64_t i = 0; i < kBlocks; ++i) blocks.push_back(*allocator.Allocate(4 * kKiB, Stream{0}));
  for (std::size_t i = 0; i < blocks.size(); i += 2) allocator.Free(blocks[i]);
  const auto calls_of_a_failure = [&](std::string& path) {
    const device::DeviceCalls before = device.calls();
    path = PathIn(allocator.Allocate(4 * kGiB, Stream{0}).status());
    const device::DeviceCalls after = device.calls();
    return std::vector<std::uint64_t>{after.segment_alloc - before.segment_alloc,
                                      after.segment_free - before.segment_free,
                                      after.map_pages - before.map_pages,
                                      after.unmap_pages - before.unmap_pages,
                                      after.reserve - before.reserve,
                                      after.record_event - before.record_event,
                                      after.query_event - before.query_event,
                                      after.synchronize - before.synchronize};
  };
  std::string path;
  const std::vector<std::uint64_t> with_dump = calls_of_a_failure(path);
  ASSERT_NE(path, "");
  unsetenv(core::kOomDumpVariable);
  std::string none;
  EXPECT_EQ(calls_of_a_failure(none), with_dump);
  EXPECT_EQ(none, "");
  const absl::StatusOr<trace::Snapshot> read = trace::Decode(BytesOf(path));
  ASSERT_TRUE(read.ok()) << read.status();
  std::uint64_t count = 0;
  for (const trace::SnapshotSegment& segment : read->segments) count += segment.blocks.size();
  EXPECT_GE(count, kBlocks);
  const absl::StatusOr<answers::Explanation> explained = ExplainFile(path);
  ASSERT_TRUE(explained.ok()) << explained.status();
  EXPECT_EQ(explained->memory.accounting.live_bytes, kBlocks / 2 * 4 * kKiB);
  EXPECT_EQ(explained->memory.accounting.total_bytes, 2 * kGiB) << "the file knows the device";
}

TEST_F(OomDumpTest, TheEventsOfARingAreInTheFile) {
  device::SimDevice device({.capacity_bytes = kGiB});
  CachingAllocator allocator(&device, {});
  const std::unique_ptr<core::Recorder> ring = *core::Recorder::Ring(&allocator);
  core::NvtxPools pools(ring.get());  // in between: what the ring keeps is found behind it
  allocator.SetSink(&pools);
  FillUp(allocator, 7, 60);
  const absl::Status status = allocator.Allocate(1000 * kMiB, Stream{0}).status();
  allocator.SetSink(ring.get());
  const absl::StatusOr<trace::Snapshot> read = trace::Decode(BytesOf(PathIn(status)));
  ASSERT_TRUE(read.ok()) << read.status() << status;
  ASSERT_GT(read->device_traces.at(0).size(), 100u);
  EXPECT_EQ(read->device_traces.at(0).back().action, trace::Action::kOom);
  const absl::StatusOr<answers::Explanation> explained = answers::ExplainSnapshot(*read, {});
  ASSERT_TRUE(explained.ok()) << explained.status();
  ASSERT_TRUE(explained->what_ifs.fidelity.has_value());
  EXPECT_EQ(explained->what_ifs.fidelity->matched, explained->what_ifs.fidelity->total);
  ExpectSameFailure(core::MakeOomReport(Asked(allocator, device, 1000 * kMiB), allocator.Segments(), {}), *explained);
}

TEST_F(OomDumpTest, NoFileIsOverwritten) {
  std::vector<std::string> there;
  for (int i = 0; i < 40; ++i) {
    there.push_back(absl::StrCat(folder_, "/ashlar_oom_", getpid(), "_", i, ".ashlar"));
    std::ofstream(there.back()) << "somebody else's";
  }
  device::SimDevice device({.capacity_bytes = 64 * kMiB});
  CachingAllocator allocator(&device, {});
  const std::string path = PathIn(allocator.Allocate(kGiB, Stream{0}).status());
  EXPECT_TRUE(ExplainFile(path).ok()) << path;
  for (const std::string& file : there) EXPECT_EQ(BytesOf(file), "somebody else's");
}

TEST_F(OomDumpTest, AProgramThatFailsInALoopDoesNotFillTheDisk) {
  device::SimDevice device({.capacity_bytes = 64 * kMiB});
  CachingAllocator allocator(&device, {});
  for (int i = 0; i < 3 * core::kMostOomDumps; ++i) {
    const absl::Status status = allocator.Allocate(kGiB, Stream{0}).status();
    EXPECT_EQ(PathIn(status) != "", i < core::kMostOomDumps) << status;
  }
  EXPECT_EQ(FileCount(), static_cast<std::size_t>(core::kMostOomDumps));
}

TEST_F(OomDumpTest, AFolderThatCannotBeWrittenIsOneLineAndTheErrorStays) {
  const std::string missing = folder_ + "/is/not/there";
  setenv(core::kOomDumpVariable, missing.c_str(), 1);
  device::SimDevice device({.capacity_bytes = 64 * kMiB});
  CachingAllocator allocator(&device, {});
  testing::internal::CaptureStderr();
  const absl::Status status = allocator.Allocate(kGiB, Stream{0}).status();
  const std::string printed = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("\nverdict: capacity"));
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("\nno state is written: " + missing));
  EXPECT_THAT(printed, testing::StartsWith("ashlar: ASHLAR_OOM_DUMP=" + missing + ": no state is written: "));
  EXPECT_THAT(printed, testing::HasSubstr("No such file or directory"));
  EXPECT_EQ(std::count(printed.begin(), printed.end(), '\n'), 1);
}

TEST_F(OomDumpTest, UnaskedNothingIsWritten) {
  unsetenv(core::kOomDumpVariable);
  device::SimDevice device({.capacity_bytes = 64 * kMiB});
  CachingAllocator allocator(&device, {});
  EXPECT_EQ(PathIn(allocator.Allocate(kGiB, Stream{0}).status()), "");
  EXPECT_EQ(FileCount(), 0u);
}

}  // namespace
}  // namespace ashlar::tests
