// Whose a recording's file is: one recorder's of one process at a time, and nobody's content is lost in silence.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "allocator/core/nvtx_pools.h"
#include "allocator/core/output_file.h"
#include "allocator/core/recorder.h"
#include "allocator/device/sim_device.h"
#include "allocator/trace/codec.h"
#include "tests/allocator/core/recorded_file.h"

namespace ashlar::core {
namespace {

namespace fs = std::filesystem;

const RecorderSettings kSmallChunks{.chunk_bytes = 1024};

RecorderSettings Overwriting() {
  RecorderSettings options = kSmallChunks;
  options.overwrites = true;
  return options;
}

// An allocator in which something happens.
struct LiveRun {
  void Pairs(int count) {
    for (int i = 0; i < count; ++i) {
      const std::uint64_t bytes = 512 * (1 + static_cast<std::uint64_t>(i) * 37 % 900);
      allocator.Free(*allocator.Allocate(bytes, Stream{0}));
    }
  }
  device::SimDevice device{{.capacity_bytes = kGiB}};
  CachingAllocator allocator{&device, {}};
};

void ExpectOneLine(const absl::Status& status, absl::StatusCode code, const std::string& path,
                   const std::string& what) {
  EXPECT_EQ(status.code(), code) << status;
  EXPECT_TRUE(absl::StartsWith(status.message(), path + ": ")) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), what)) << status;
  EXPECT_FALSE(absl::StrContains(status.message(), "\n")) << status;
}

void ExpectWhole(const std::string& path, std::uint64_t events) {
  const absl::StatusOr<trace::Snapshot> read = trace::Decode(BytesOf(path));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(read->notes.empty()) << read->notes.front().message;
  EXPECT_TRUE(read->recording->is_complete);
  EXPECT_EQ(read->device_traces.at(0).size(), events);
}

class RecorderFileTest : public testing::Test {
 protected:
  RecorderFileTest() : folder_(TempFile(testing::UnitTest::GetInstance()->current_test_info()->name())) {
    fs::create_directories(folder_);
  }
  ~RecorderFileTest() override { fs::remove_all(folder_); }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  std::size_t FileCount() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  const std::string folder_;
};

// In a child; `body` says its exit code.
pid_t Fork(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  return child;
}

int ExitCodeOf(pid_t child) {
  int status = 0;
  if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

void KillAndWait(pid_t child) {
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
}

TEST_F(RecorderFileTest, ASecondRecorderOfAnAllocatorIsRefusedAndTheFirstGoesOn) {
  LiveRun run;
  const std::unique_ptr<Recorder> first = *Recorder::ToFile(&run.allocator, Path("first"), kSmallChunks);
  run.Pairs(300);
  const auto second = Recorder::ToFile(&run.allocator, Path("second"));
  ExpectOneLine(second.status(), absl::StatusCode::kFailedPrecondition, Path("second"), "a recorder or another sink");
  EXPECT_FALSE(fs::exists(Path("second")));
  EXPECT_EQ(Recorder::Ring(&run.allocator).status().code(), absl::StatusCode::kFailedPrecondition);
  run.Pairs(300);
  ASSERT_EQ(first->Finish(), absl::OkStatus());
  EXPECT_EQ(first->event_count() % 3, 1u) << "of each pair three, and one of the segment";
  EXPECT_GT(first->event_count(), 1800u);
  ExpectWhole(Path("first"), first->event_count());
  EXPECT_TRUE(Recorder::ToFile(&run.allocator, Path("second")).ok()) << "the first has ended";
}

TEST_F(RecorderFileTest, ASinkThatIsThereKeepsItsPlace) {
  LiveRun run;
  NvtxPools pools;
  run.allocator.SetSink(&pools);
  EXPECT_EQ(Recorder::ToFile(&run.allocator, Path("file")).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Recorder::Ring(&run.allocator).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_FALSE(run.allocator.AddSink(&pools)) << "neither of the two has taken it away";
  run.allocator.SetSink(nullptr);
  EXPECT_TRUE(run.allocator.AddSink(&pools));
}

// A file that cannot be had leaves the allocator without a recorder.
TEST_F(RecorderFileTest, WhatCouldNotBeginLeavesNothing) {
  LiveRun run;
  EXPECT_FALSE(Recorder::ToFile(&run.allocator, Path("no/such/folder")).ok());
  EXPECT_FALSE(Recorder::ToFile(&run.allocator, "/dev/full").ok());
  run.Pairs(10);
  EXPECT_TRUE(Recorder::ToFile(&run.allocator, Path("file")).ok());
}

TEST_F(RecorderFileTest, TwoRecordersOfOneProcessDoNotShareAFile) {
  LiveRun a;
  LiveRun b;
  const std::unique_ptr<Recorder> first = *Recorder::ToFile(&a.allocator, Path("file"), kSmallChunks);
  fs::create_symlink(Path("file"), Path("link"));
  for (const char* name : {"file", "link"}) {
    ExpectOneLine(Recorder::ToFile(&b.allocator, Path(name), Overwriting()).status(),
                  absl::StatusCode::kFailedPrecondition, Path(name), "another recorder is writing it");
  }
  const std::unique_ptr<Recorder> ring = *Recorder::Ring(&b.allocator);
  ExpectOneLine(ring->Write(Path("file")), absl::StatusCode::kFailedPrecondition, Path("file"),
                "another recorder is writing it");
  a.Pairs(1000);
  ASSERT_EQ(first->Finish(), absl::OkStatus());
  ExpectWhole(Path("file"), first->event_count());
}

TEST_F(RecorderFileTest, AnExistingFileIsKeptUnlessTheOptionsSayOtherwise) {
  std::ofstream(Path("file")) << "the figures of last week";
  LiveRun run;
  ExpectOneLine(Recorder::ToFile(&run.allocator, Path("file")).status(), absl::StatusCode::kAlreadyExists, Path("file"),
                "the file is there already");
  EXPECT_EQ(BytesOf(Path("file")), "the figures of last week");
  std::unique_ptr<Recorder> recorder = *Recorder::ToFile(&run.allocator, Path("file"), Overwriting());
  run.Pairs(5);
  ASSERT_EQ(recorder->Finish(), absl::OkStatus());
  ExpectWhole(Path("file"), recorder->event_count());
  EXPECT_EQ(Recorder::ToFile(&run.allocator, Path("file")).status().code(), absl::StatusCode::kAlreadyExists);

  std::ofstream(Path("empty"));  // as mkstemp leaves it
  fs::create_symlink(Path("not_yet"), Path("link"));
  for (const char* name : {"empty", "link"}) {
    recorder = nullptr;
    recorder = *Recorder::ToFile(&run.allocator, Path(name));
    ASSERT_EQ(recorder->Finish(), absl::OkStatus());
    ExpectWhole(Path(name), 0);
  }
  EXPECT_TRUE(fs::exists(Path("not_yet")));
}

TEST_F(RecorderFileTest, APipeThatNobodyReadsIsNotWaitedFor) {
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  LiveRun run;
  ExpectOneLine(Recorder::ToFile(&run.allocator, Path("pipe")).status(), absl::StatusCode::kUnavailable, Path("pipe"),
                "nobody reads this pipe");
  ExpectOneLine(ReplaceFile(Path("pipe"), {"state"}), absl::StatusCode::kUnavailable, Path("pipe"),
                "nobody reads this pipe");
}

// Where others may write, a link may wait under the name of the temporary file.
TEST_F(RecorderFileTest, ALinkBesideTheFileIsNotFollowed) {
  std::ofstream(Path("other")) << "not ours";
  for (int i = 0; i < 100; ++i)
    fs::create_symlink("other", Path("state." + std::to_string(getpid()) + "." + std::to_string(i) + ".tmp"));
  EXPECT_EQ(ReplaceFile(Path("state"), {"a ", "state"}), absl::OkStatus());
  EXPECT_EQ(BytesOf(Path("state")), "a state");
  EXPECT_EQ(BytesOf(Path("other")), "not ours");
}

// Ranks that begin at one moment under one name: one gets it, the others are told; under a pattern all get theirs.
TEST_F(RecorderFileTest, RanksThatBeginTogetherDoNotShareAFile) {
  constexpr int kRanks = 6;
  for (const std::string name : {"rank", "rank_%p"}) {
    int gate[2];
    ASSERT_EQ(pipe(gate), 0);
    std::vector<pid_t> ranks;
    for (int i = 0; i < kRanks; ++i) {
      ranks.push_back(Fork([&] {
        close(gate[1]);
        char byte = 0;
        if (read(gate[0], &byte, 1) != 0) return 3;  // until every rank is there
        LiveRun run;
        const auto recorder = Recorder::ToFile(&run.allocator, Path(name), kSmallChunks);
        if (!recorder.ok()) {
          const bool is_told =
              absl::IsFailedPrecondition(recorder.status()) || absl::IsAlreadyExists(recorder.status());
          return is_told ? 1 : 2;
        }
        run.Pairs(2000);
        return (*recorder)->Finish().ok() ? 0 : 4;
      }));
    }
    close(gate[0]);
    close(gate[1]);
    std::vector<int> codes;
    for (const pid_t rank : ranks) codes.push_back(ExitCodeOf(rank));
    const int written = static_cast<int>(std::count(codes.begin(), codes.end(), 0));
    EXPECT_EQ(written, name == "rank" ? 1 : kRanks) << testing::PrintToString(codes);
    EXPECT_EQ(std::count(codes.begin(), codes.end(), 1), kRanks - written) << testing::PrintToString(codes);
    if (name == "rank") ExpectWhole(Path(name), 3 * 2000 + 1);
    for (const pid_t rank : ranks) {
      if (name != "rank") ExpectWhole(Path("rank_" + std::to_string(rank)), 3 * 2000 + 1);
    }
  }
}

// The lock goes with the process, however it ends, and whoever else it has forked.
TEST_F(RecorderFileTest, AnotherProcessKeepsTheFileUntilItEnds) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t writer = Fork([&] {
    LiveRun run;
    const auto recorder = Recorder::ToFile(&run.allocator, Path("file"), kSmallChunks);
    Fork([&ready] {  // it never allocates
      const pid_t self = getpid();
      return write(ready[1], &self, sizeof(self)) == sizeof(self) ? static_cast<int>(sleep(60)) : 1;
    });
    return recorder.ok() ? static_cast<int>(sleep(60)) : 1;
  });
  pid_t worker = 0;
  ASSERT_EQ(read(ready[0], &worker, sizeof(worker)), static_cast<ssize_t>(sizeof(worker)));
  LiveRun run;
  ExpectOneLine(Recorder::ToFile(&run.allocator, Path("file"), Overwriting()).status(),
                absl::StatusCode::kFailedPrecondition, Path("file"), "another recorder is writing it");
  KillAndWait(writer);
  const auto recorder = Recorder::ToFile(&run.allocator, Path("file"), Overwriting());
  EXPECT_TRUE(recorder.ok()) << recorder.status();
  kill(worker, SIGKILL);
}

// The child's copy of the recorder has ended; the child may record by itself, and the parent's file is the parent's.
TEST_F(RecorderFileTest, AForkedChildHasARecordingOfItsOwnOrNone) {
  LiveRun run;
  const std::unique_ptr<Recorder> parents = *Recorder::ToFile(&run.allocator, Path("run_%p"), kSmallChunks);
  EXPECT_EQ(parents->path(), Path("run_" + std::to_string(getpid())));
  run.Pairs(100);
  const pid_t child = Fork([&] {
    if (!absl::IsFailedPrecondition(parents->status())) return 1;
    run.Pairs(3000);
    const auto same = Recorder::ToFile(&run.allocator, parents->path(), Overwriting());
    if (!absl::IsFailedPrecondition(same.status())) return 2;
    auto own = Recorder::ToFile(&run.allocator, Path("run_%p"), kSmallChunks);
    if (!own.ok()) return 3;
    if (!absl::IsFailedPrecondition(parents->Finish())) return 4;  // the child's is not taken off by that
    run.Pairs(500);
    if (!(*own)->Finish().ok()) return 5;
    return (*own)->event_count() == 1500 ? 0 : 6;
  });
  EXPECT_EQ(ExitCodeOf(child), 0);
  run.Pairs(100);
  ASSERT_EQ(parents->Finish(), absl::OkStatus());
  ExpectWhole(parents->path(), 3 * 200 + 1);
  ExpectWhole(Path("run_" + std::to_string(child)), 1500);
}

// Behind another sink as well; a ring goes on in the child, on what it has.
TEST_F(RecorderFileTest, AForkReachesTheRecorderBehindAnotherSink) {
  LiveRun run;
  const std::unique_ptr<Recorder> file = *Recorder::ToFile(&run.allocator, Path("file"), kSmallChunks);
  NvtxPools pools(file.get());
  run.allocator.SetSink(&pools);
  LiveRun other;
  const std::unique_ptr<Recorder> ring = *Recorder::Ring(&other.allocator);
  other.Pairs(10);
  const pid_t child = Fork([&] {
    run.Pairs(1000);
    if (!absl::IsFailedPrecondition(file->status())) return 1;
    other.Pairs(10);
    return ring->Write(Path("ring_%p")).ok() && ring->event_count() == 61 ? 0 : 2;
  });
  EXPECT_EQ(ExitCodeOf(child), 0);
  ExpectWhole(Path("ring_" + std::to_string(child)), 61);
  run.Pairs(1);
  ASSERT_EQ(file->Finish(), absl::OkStatus());
  ExpectWhole(Path("file"), 4);
}

// A reader never sees a part of a ring's file, and nothing else is left in the folder.
TEST_F(RecorderFileTest, ARingsFileIsReplacedAsAWhole) {
  LiveRun run;
  const std::unique_ptr<Recorder> ring = *Recorder::Ring(&run.allocator, kSmallChunks);
  run.Pairs(20'000);
  ASSERT_EQ(ring->Write(Path("file")), absl::OkStatus());
  std::atomic<bool> is_over{false};
  std::thread writer([&] {
    for (int i = 0; i < 40; ++i) EXPECT_EQ(ring->Write(Path("file")), absl::OkStatus());
    is_over = true;
  });
  while (!is_over) ExpectWhole(Path("file"), ring->event_count());
  writer.join();
  EXPECT_EQ(FileCount(), 1u);
  ExpectOneLine(ring->Write(folder_), absl::StatusCode::kFailedPrecondition, folder_, "Is a directory");
  ExpectOneLine(ring->Write("/dev/full"), absl::StatusCode::kResourceExhausted, "/dev/full", "No space left");
  EXPECT_FALSE(fs::is_regular_file("/dev/full"));
  fs::create_symlink(Path("file"), Path("link"));
  EXPECT_EQ(ring->Write(Path("link")), absl::OkStatus());
  EXPECT_TRUE(fs::is_symlink(Path("link")));
}

TEST(OutputPathTest, NamesTheProcessAndTheHost) {
  const std::string process = std::to_string(getpid());
  EXPECT_EQ(OutputPath("run.ashlar"), "run.ashlar");
  EXPECT_EQ(OutputPath("/tmp/%p/rank_%p.ashlar"), "/tmp/" + process + "/rank_" + process + ".ashlar");
  EXPECT_EQ(OutputPath("100%%p and 3%x%"), "100%p and 3%x%");
  EXPECT_FALSE(absl::StrContains(OutputPath("%h"), "%"));
  EXPECT_GT(OutputPath("%h").size(), 0u);
}

}  // namespace
}  // namespace ashlar::core
