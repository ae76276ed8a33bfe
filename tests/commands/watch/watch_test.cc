// A recording is watched while an allocator writes it, and what is shown is what the allocator says of itself.
#include "commands/watch/watch.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "allocator/base/rng.h"
#include "allocator/core/accounting.h"
#include "allocator/core/caching_allocator.h"
#include "allocator/core/recorder.h"
#include "allocator/device/sim_device.h"
#include "commands/watch/watch.h"

namespace ashlar::answers {
namespace {

std::string WatchedPath(const std::string& name) {
  return absl::StrCat(testing::TempDir(), "watch_test_", getpid(), "_", name);
}

// Random requests of one thread, from wherever it stands.
class Worked {
 public:
  explicit Worked(core::CachingAllocator& allocator) : allocator_(allocator) {}
  void Run(int steps) {
    for (int i = 0; i < steps; ++i) {
      if (blocks_.size() < rng_.Below(60)) {
        blocks_.push_back(*allocator_.Allocate(rng_.Between(1, 4 * kMiB), Stream{rng_.Below(2)}));
      } else if (!blocks_.empty()) {
        std::swap(blocks_[rng_.Below(blocks_.size())], blocks_.back());
        allocator_.Free(blocks_.back());
        blocks_.pop_back();
      }
    }
  }

 private:
  core::CachingAllocator& allocator_;
  Rng rng_{3};
  std::vector<core::Block*> blocks_;
};

void ExpectIsNow(const WatchAnswer& answer, const core::CachingAllocator& allocator) {
  const core::Stats stats = allocator.stats();
  EXPECT_EQ(answer.accounting.reserved_bytes, static_cast<std::uint64_t>(stats.reserved_bytes.all().current));
  EXPECT_EQ(answer.accounting.allocated_bytes, static_cast<std::uint64_t>(stats.allocated_bytes.all().current));
  const std::vector<trace::SnapshotSegment> segments = allocator.Segments();
  EXPECT_EQ(answer.accounting.stranded_bytes, core::Account(segments).stranded_bytes);
  std::uint64_t largest = 0;
  for (const trace::SnapshotSegment& segment : segments) {
    for (const trace::SnapshotBlock& block : segment.blocks) {
      if (block.state == trace::BlockState::kFree) largest = std::max(largest, block.size_bytes);
    }
  }
  EXPECT_EQ(answer.largest_free_bytes, largest);
}

TEST(WatchTest, EveryLookIsTheAllocatorsOwnState) {
  device::SimDevice device({.capacity_bytes = 4 * kGiB});
  core::CachingAllocator allocator(&device, {});
  Worked worked(allocator);
  worked.Run(500);  // what is there before the recording begins
  const std::int64_t before = allocator.stats().allocation.all().allocated;
  const std::string path = WatchedPath("looks");
  const std::unique_ptr<core::Recorder> recorder =
      *core::Recorder::ToFile(&allocator, path, {.chunk_bytes = 2048, .overwrites = true});
  const absl::StatusOr<std::string> found = RecordedFileOf(getpid());
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(*found, path);
  const absl::StatusOr<std::unique_ptr<WatchedFile>> file = WatchedFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  for (int part = 0; part < 6; ++part) {
    worked.Run(300);
    ASSERT_EQ(recorder->Flush(), absl::OkStatus());
    const absl::StatusOr<WatchAnswer> answer = (*file)->Look();
    ASSERT_TRUE(answer.ok()) << answer.status();
    ExpectIsNow(*answer, allocator);
    EXPECT_EQ(answer->events, recorder->event_count());
    EXPECT_EQ(answer->total_bytes, 4 * kGiB);
    EXPECT_FALSE(answer->has_ended);
    EXPECT_EQ(answer->stopped, "");
  }
  ASSERT_EQ(recorder->Finish(), absl::OkStatus());
  const absl::StatusOr<WatchAnswer> answer = (*file)->Look();
  ASSERT_TRUE(answer.ok()) << answer.status();
  ExpectIsNow(*answer, allocator);
  EXPECT_TRUE(answer->has_ended);
  std::uint64_t allocations = 0;
  for (const WatchSecond& second : answer->minute) allocations += second.allocations;
  EXPECT_EQ(allocations, static_cast<std::uint64_t>(allocator.stats().allocation.all().allocated - before));
  std::remove(path.c_str());
}

// A recording of a process that was killed after its first bytes.
std::string KilledRecording(const std::string& name) {
  const std::string path = WatchedPath(name);
  const pid_t child = fork();
  if (child == 0) {
    device::SimDevice device({.capacity_bytes = 4 * kGiB});
    core::CachingAllocator allocator(&device, {});
    const auto recorder = *core::Recorder::ToFile(&allocator, path, {.overwrites = true});
    (void)*allocator.Allocate(30 * kMiB, Stream{0});
    (void)recorder->Flush();
    raise(SIGKILL);
  }
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
  return path;
}

TEST(WatchTest, SaysWhyNothingMoreComes) {
  const std::string path = KilledRecording("killed");
  const absl::StatusOr<std::unique_ptr<WatchedFile>> file = WatchedFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  const absl::StatusOr<WatchAnswer> dead = (*file)->Look();
  ASSERT_TRUE(dead.ok()) << dead.status();
  EXPECT_EQ(dead->accounting.allocated_bytes, 30 * kMiB);
  EXPECT_FALSE(dead->has_ended);
  EXPECT_EQ(dead->stopped, "nobody writes it any more");
  ASSERT_EQ(std::rename(path.c_str(), (path + "2").c_str()), 0);
  EXPECT_EQ((*file)->Look()->stopped, "the file is gone");
  std::ofstream(path) << "another";
  EXPECT_EQ((*file)->Look()->stopped, "another file has its name now");
  ASSERT_EQ(std::rename((path + "2").c_str(), path.c_str()), 0);
  ASSERT_EQ(truncate(path.c_str(), 20), 0);
  EXPECT_EQ((*file)->Look().status().code(), absl::StatusCode::kDataLoss);
  std::remove(path.c_str());
}

// However the file grows, a look takes what is whole and waits for the rest.
TEST(WatchTest, AFileMayGrowByAnyBytes) {
  device::SimDevice device({.capacity_bytes = 4 * kGiB});
  core::CachingAllocator allocator(&device, {});
  const std::string whole = WatchedPath("whole");
  const std::unique_ptr<core::Recorder> recorder =
      *core::Recorder::ToFile(&allocator, whole, {.chunk_bytes = 1024, .overwrites = true});
  Worked worked(allocator);
  worked.Run(800);
  ASSERT_EQ(recorder->Finish(), absl::OkStatus());
  std::ifstream in(whole, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), {});
  const std::string path = WatchedPath("grows");
  std::ofstream out(path, std::ios::binary);
  out.write(bytes.data(), 30).flush();
  const absl::StatusOr<std::unique_ptr<WatchedFile>> file = WatchedFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  Rng rng(1);
  std::uint64_t events = 0;
  for (std::size_t at = 30; at < bytes.size();) {
    const std::size_t count = std::min<std::size_t>(rng.Between(1, 300), bytes.size() - at);
    out.write(bytes.data() + at, static_cast<std::streamsize>(count)).flush();
    at += count;
    const absl::StatusOr<WatchAnswer> answer = (*file)->Look();
    ASSERT_TRUE(answer.ok()) << answer.status();
    EXPECT_GE(answer->events, events);
    EXPECT_EQ(answer->has_ended, at == bytes.size());
    events = answer->events;
  }
  EXPECT_EQ(events, recorder->event_count());
  ExpectIsNow(*(*file)->Look(), allocator);
  std::remove(path.c_str());
  std::remove(whole.c_str());
}

TEST(WatchTest, WhatDoesNotGrowIsRefusedWithTheWayOut) {
  const std::string path = WatchedPath("text");
  std::ofstream(path) << "hello";
  const absl::Status status = WatchedFile::Open(path).status();
  EXPECT_TRUE(absl::StrContains(status.message(), "ashlar explain reads it")) << status;
  EXPECT_EQ(WatchedFile::Open("/no/such/file").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(WatchedFile::Open("/dev/null").status().code(), absl::StatusCode::kInvalidArgument);
  std::remove(path.c_str());
}

TEST(WatchTest, AProcessThatDoesNotRecordSaysHowTo) {
  const absl::Status status = RecordedFileOf(getpid()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(absl::StrContains(status.message(), "ashlar record")) << status;
  EXPECT_TRUE(absl::StrContains(RecordedFileOf(0x7fffffff).status().message(), "there is no process"));
}

trace::Event At(double seconds, trace::Action action, std::uint64_t bytes) {
  trace::Event event;
  event.action = action;
  event.size_bytes = event.block_size_bytes = bytes;
  event.time_us = static_cast<std::int64_t>(seconds * 1e6);
  return event;
}

TEST(WatchTest, RatesAndTheMinuteAreOfTheRecordingsTimes) {
  WatchTally tally;
  for (int i = 0; i < 100; ++i) tally.Add(At(1000.5, trace::Action::kAlloc, 10));
  for (int i = 0; i < 40; ++i) tally.Add(At(1003.25, trace::Action::kFreeRequested, 10));
  tally.Add(At(1002, trace::Action::kSegmentAlloc, 500));  // an older time counts with the last
  WatchAnswer answer;
  tally.PutInto(answer);
  ASSERT_EQ(answer.minute.size(), 4u);
  const std::uint64_t most[] = {1000, 1000, 1000, 1000};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(answer.minute[i].most_allocated_bytes, most[i]) << i;
  EXPECT_EQ(answer.minute[3].last_allocated_bytes, 600u);
  EXPECT_EQ(answer.minute[3].device_calls, 1u);
  EXPECT_NEAR(answer.rates->allocations, 100 / 2.75, 1e-9);
  EXPECT_NEAR(answer.rates->frees, 40 / 2.75, 1e-9);
  tally.Add(At(1100.5, trace::Action::kAlloc, 10));
  answer = {};
  tally.PutInto(answer);
  ASSERT_EQ(answer.minute.size(), 60u);
  EXPECT_EQ(answer.minute.front().most_allocated_bytes, 600u) << "what was allocated long before";
  EXPECT_EQ(answer.minute.back().most_allocated_bytes, 610u);
  EXPECT_NEAR(answer.rates->allocations, 1 / 4.5, 1e-9);
  EXPECT_EQ(answer.peak_allocated_bytes, 1000u);
}

}  // namespace
}  // namespace ashlar::answers
