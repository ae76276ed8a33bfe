// Pools that sleep: their contents, the device's books, what is refused meanwhile, and what a recording says of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "allocator/core/caching_allocator.h"
#include "allocator/core/inspect.h"
#include "allocator/core/recorder.h"
#include "allocator/device/sim_device.h"
#include "allocator/trace/codec.h"
#include "tests/allocator/core/faulty_device.h"
#include "tests/allocator/core/recorded_file.h"
#include "tests/allocator/core/sleep_program.h"

namespace ashlar::core {
namespace {

using testing::HasSubstr;

constexpr PoolId kPool{0, 7};
constexpr const char* kConfs[] = {"expandable_segments:True", "policy:ashlar"};

void Fill(Block* block, int byte) {
  std::memset(reinterpret_cast<void*>(static_cast<std::uintptr_t>(block->address)), byte, block->size_bytes);
}
bool HoldsOnly(Block* block, int byte) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(static_cast<std::uintptr_t>(block->address));
  return bytes[0] == byte && std::memcmp(bytes, bytes + 1, block->size_bytes - 1) == 0;
}

class SleepTest : public testing::TestWithParam<const char*> {
 protected:
  SleepTest() : allocator_(&device_, core::Options(std::string(GetParam()) + ",report_leaks:False")) {
    EXPECT_TRUE(allocator_.TagPool(kPool, "rollout").ok());
  }
  Block* Allocate(std::uint64_t bytes, PoolId pool = kPool) { return *allocator_.Allocate(bytes, Stream{0}, pool); }

  FaultyDevice device_{{.capacity_bytes = 256 * kMiB}};
  CachingAllocator allocator_;
};
INSTANTIATE_TEST_SUITE_P(Confs, SleepTest, testing::ValuesIn(kConfs));

TEST_P(SleepTest, GivesBackPagesAndKeepsLiveBytesAlone) {
  Block* awake = Allocate(3 * kMiB, {});
  Block* live = Allocate(5 * kMiB);
  Block* freed = Allocate(30 * kMiB);
  Fill(awake, 1);
  Fill(live, 2);
  allocator_.Free(freed);
  const std::uint64_t before = device_.used_bytes();
  const std::uint64_t address = live->address;

  const absl::StatusOr<SleepReport> slept = allocator_.Sleep({.tags = {"rollout"}});
  ASSERT_TRUE(slept.ok()) << slept.status();
  EXPECT_EQ(slept->kept_host_bytes, live->size_bytes);
  EXPECT_EQ(slept->kept_file_bytes, 0u);
  EXPECT_EQ(slept->returned_bytes, before - device_.used_bytes());
  EXPECT_EQ(device_.copied_bytes(), live->size_bytes) << "what is cached is not copied";
  const std::uint64_t page = awake->segment->page_bytes;
  EXPECT_EQ(device_.used_bytes(), RoundUp(3 * kMiB, page)) << "the page with the block that is awake";
  EXPECT_TRUE(allocator_.IsAsleep(address));
  EXPECT_FALSE(allocator_.IsAsleep(awake->address));

  ASSERT_TRUE(allocator_.Wake({.tags = {"rollout"}}).ok());
  EXPECT_EQ(live->address, address);
  EXPECT_TRUE(HoldsOnly(live, 2) && HoldsOnly(awake, 1));
  EXPECT_EQ(device_.host_memories(), 0u);
  EXPECT_TRUE(allocator_.Validate().ok());
}

TEST_P(SleepTest, WhatIsBeyondTheLimitOfTheHostGoesToAFile) {
  Block* first = Allocate(5 * kMiB);
  Block* second = Allocate(5 * kMiB);
  Fill(first, 3);
  Fill(second, 4);
  const absl::StatusOr<SleepReport> slept =
      allocator_.Sleep({.tags = {"rollout"}, .host_limit_bytes = kMiB, .folder = testing::TempDir()});
  ASSERT_TRUE(slept.ok()) << slept.status();
  EXPECT_EQ(slept->kept_host_bytes, kMiB);
  EXPECT_EQ(slept->kept_file_bytes, first->size_bytes + second->size_bytes - kMiB);
  ASSERT_TRUE(allocator_.Wake({}).ok());
  EXPECT_TRUE(HoldsOnly(first, 3) && HoldsOnly(second, 4));

  const absl::StatusOr<SleepReport> nowhere =
      allocator_.Sleep({.tags = {"rollout"}, .keep = Keep::kFile, .folder = "/no/such/folder"});
  EXPECT_THAT(std::string(nowhere.status().message()), HasSubstr("/no/such/folder: open: No such file"));
  EXPECT_FALSE(allocator_.IsAsleep(first->address));
  EXPECT_TRUE(HoldsOnly(first, 3));
}

TEST_P(SleepTest, WhatIsFreedMeanwhileDoesNotComeBack) {
  Block* stays = Allocate(3 * kMiB);
  Block* goes = Allocate(60 * kMiB);
  ASSERT_TRUE(allocator_.Sleep({.tags = {"rollout"}}).ok());
  allocator_.Free(goes);
  EXPECT_TRUE(allocator_.Validate().ok());
  ASSERT_TRUE(allocator_.Wake({.tags = {"rollout"}}).ok());
  EXPECT_LE(device_.used_bytes(), 40 * kMiB);
  EXPECT_TRUE(allocator_.Validate().ok());
  allocator_.Free(stays);
  allocator_.EmptyCache();
  EXPECT_EQ(device_.used_bytes(), 0u);
}

TEST_P(SleepTest, RefusesInOneLineWhatNeedsThePages) {
  Block* live = Allocate(3 * kMiB);
  const std::uint64_t named = *allocator_.AllocateAddress(kMiB, Stream{0}, kPool);
  ASSERT_TRUE(allocator_.Sleep({.tags = {"rollout"}}).ok());
  const std::string asleep = "pool {0, 7} \"rollout\" is asleep: call Wake first";
  EXPECT_EQ(allocator_.Allocate(512, Stream{0}, kPool).status(), absl::FailedPreconditionError("Allocate: " + asleep));
  allocator_.RecordStream(live, Stream{5});
  EXPECT_EQ(allocator_.TakeDeviceError(), absl::FailedPreconditionError("RecordStream: " + asleep));
  EXPECT_FALSE(allocator_.RecordStreamOfAddress(named, Stream{5}));
  EXPECT_TRUE(allocator_.FreeAddress(named));
  EXPECT_TRUE(allocator_.Allocate(512, Stream{0}).ok()) << "other pools go on";
  ASSERT_TRUE(allocator_.Wake({}).ok());
  EXPECT_TRUE(allocator_.Allocate(512, Stream{0}, kPool).ok());
  EXPECT_THAT(std::string(allocator_.Sleep({.tags = {"nobody"}}).status().message()), HasSubstr("no pool has the tag"));
}

TEST_P(SleepTest, WaitsForEveryStreamThatUsesThePool) {
  FaultyDevice device({.capacity_bytes = 256 * kMiB, .events_complete_immediately = false});
  CachingAllocator allocator(&device, core::Options(std::string(GetParam()) + ",report_leaks:False"));
  Block* live = *allocator.Allocate(3 * kMiB, Stream{2});
  allocator.RecordStream(live, Stream{5});
  const device::DeviceEvent own = device.RecordEvent(Stream{2});
  const device::DeviceEvent other = device.RecordEvent(Stream{5});
  const device::DeviceEvent stranger = device.RecordEvent(Stream{6});
  ASSERT_TRUE(allocator.Sleep({.keep = Keep::kNothing}).ok());
  EXPECT_TRUE(device.QueryEvent(own) && device.QueryEvent(other));
  EXPECT_FALSE(device.QueryEvent(stranger));
}

TEST_P(SleepTest, NotWhileAGraphIsCaptured) {
  Block* live = Allocate(3 * kMiB);
  ASSERT_TRUE(allocator_.BeginPool({1, 0}, [](Stream) { return true; }, RouteKind::kCapture).ok());
  EXPECT_THAT(std::string(allocator_.Sleep({}).status().message()), HasSubstr("while a graph is being captured"));
  EXPECT_FALSE(allocator_.IsAsleep(live->address));
  ASSERT_TRUE(allocator_.EndPool({1, 0}).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(allocator_.BeginPool(
      kPool, [](Stream) { return true; }, RouteKind::kCapture)))
      << "what is free in a tagged pool goes back, and a graph may still use it";
}

// What a graph may still use is there again, though nobody holds it.
TEST_P(SleepTest, FreeMemoryOfAPoolWithUsersComesBack) {
  constexpr PoolId kGraphs{3, 0};
  allocator_.ConfigurePool(kGraphs, false, false);
  allocator_.Free(Allocate(30 * kMiB, kGraphs));
  Block* live = Allocate(kMiB, kGraphs);
  const std::uint64_t before = device_.used_bytes();
  ASSERT_TRUE(allocator_.Sleep({.pools = {kGraphs}}).ok());
  EXPECT_EQ(device_.used_bytes(), 0u);
  ASSERT_TRUE(allocator_.Wake({.pools = {kGraphs}}).ok());
  EXPECT_EQ(device_.used_bytes(), before);
  allocator_.Free(live);
}

TEST_P(SleepTest, AWakeWithoutMemoryIsExplainedAndLosesNothing) {
  Block* live = Allocate(100 * kMiB);
  Fill(live, 9);
  ASSERT_TRUE(allocator_.Sleep({.tags = {"rollout"}}).ok());
  Block* taken = Allocate(200 * kMiB, {});
  const absl::Status failed = allocator_.Wake({.tags = {"rollout"}});
  EXPECT_TRUE(absl::IsResourceExhausted(failed));
  EXPECT_THAT(std::string(failed.message()),
              HasSubstr("Wake: what sleeps is kept: out of memory: 100.00 MiB requested"));
  EXPECT_THAT(std::string(failed.message()), HasSubstr("\nwhere 256.00 MiB went (parts sum exactly):"));
  EXPECT_TRUE(allocator_.IsAsleep(live->address));
  EXPECT_TRUE(allocator_.Validate().ok());
  allocator_.Free(taken);  // the cache has it: a wake empties it
  ASSERT_TRUE(allocator_.Wake({.tags = {"rollout"}}).ok());
  EXPECT_TRUE(HoldsOnly(live, 9));
}

TEST_P(SleepTest, ALimitHoldsForAWakeToo) {
  Block* live = Allocate(100 * kMiB);
  ASSERT_TRUE(allocator_.Sleep({.tags = {"rollout"}}).ok());
  allocator_.SetMemoryLimit(50 * kMiB);
  EXPECT_TRUE(absl::IsResourceExhausted(allocator_.Wake({})));
  allocator_.SetMemoryLimit(std::nullopt);
  EXPECT_TRUE(allocator_.Wake({}).ok());
  allocator_.Free(live);
}

// Each thread has its own cache of blocks: none of them serves from a pool that sleeps.
TEST_P(SleepTest, FreesOfOtherThreadsGoOn) {
  std::vector<Block*> blocks;
  std::thread([&] {
    for (int i = 0; i < 40; ++i) blocks.push_back(Allocate(64 * kKiB));
    for (int i = 0; i < 20; ++i) allocator_.Free(blocks[2 * static_cast<std::size_t>(i)]);
  }).join();
  ASSERT_TRUE(allocator_.Sleep({.tags = {"rollout"}}).ok());
  std::thread([&] {
    for (int i = 0; i < 10; ++i) allocator_.Free(blocks[4 * static_cast<std::size_t>(i) + 1]);
    EXPECT_TRUE(absl::IsFailedPrecondition(allocator_.Allocate(64 * kKiB, Stream{0}, kPool).status()));
  }).join();
  ASSERT_TRUE(allocator_.Wake({}).ok());
  EXPECT_TRUE(allocator_.Validate().ok());
  EXPECT_EQ(allocator_.stats().allocation.all().current, 10);
  std::thread([&] { EXPECT_TRUE(allocator_.Allocate(64 * kKiB, Stream{0}, kPool).ok()); }).join();
}

TEST(SleepOfPlainMemoryTest, SaysWhyItCannot) {
  FaultyDevice device({.capacity_bytes = 256 * kMiB});
  CachingAllocator allocator(&device, core::Options("report_leaks:False"));
  Block* live = *allocator.Allocate(3 * kMiB, Stream{0});
  const absl::StatusOr<SleepReport> slept = allocator.Sleep({});
  EXPECT_EQ(slept.status(),
            absl::FailedPreconditionError("the default pool cannot sleep: 20.00 MiB of it are of cudaMalloc, whose "
                                          "addresses go with the memory: tag the pool before it has any, or use "
                                          "expandable_segments:True or policy:ashlar"));
  allocator.Free(live);
  EXPECT_TRUE(allocator.Sleep({}).ok()) << "nothing but a cache, which goes back";
  EXPECT_EQ(device.used_bytes(), 0u);
}

// Another process has the pages: they would not come back to the device, and it would go on with the old ones.
TEST_P(SleepTest, APoolWithABlockThatAnotherProcessHasStaysAwake) {
  Block* shared = Allocate(3 * kMiB);
  const absl::StatusOr<SharedPage> page = allocator_.SharePage(shared->address + kMiB);
  ASSERT_TRUE(page.ok()) << page.status();
  close(page->file);
  const absl::StatusOr<SleepReport> slept = allocator_.Sleep({.tags = {"rollout"}});
  ASSERT_TRUE(slept.ok()) << slept.status();
  EXPECT_FALSE(allocator_.IsAsleep(shared->address));
  EXPECT_EQ(slept->left_bytes, device_.used_bytes());
  EXPECT_THAT(allocator_.Held(), testing::ElementsAre(testing::Field(
                                     &HeldPart::owner,
                                     "pool {0, 7} \"rollout\", which a block that another process has keeps "
                                     "awake")));
  Block* const again = Allocate(64 * kKiB);
  allocator_.Free(shared);  // PyTorch frees it when the other process is done with it
  ASSERT_TRUE(allocator_.Sleep({.tags = {"rollout"}}).ok());
  EXPECT_TRUE(allocator_.IsAsleep(again->address));
  ASSERT_TRUE(allocator_.Wake({}).ok());
  allocator_.Free(again);
  EXPECT_FALSE(Allocate(3 * kMiB)->is_shared) << "the next block there is nobody else's";
}

TEST_P(SleepTest, EachPartOfWhatIsHeldHasAnOwner) {
  Allocate(3 * kMiB);
  Block* awake = Allocate(30 * kMiB, {});
  const std::uint64_t before = device_.used_bytes();
  const std::vector<HeldPart> all = allocator_.Held();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].owner, "the default pool");
  EXPECT_EQ(all[1].owner, "pool {0, 7} \"rollout\"");
  EXPECT_EQ(all[0].bytes + all[1].bytes, before);
  ASSERT_TRUE(allocator_.Sleep({.tags = {"rollout"}}).ok());
  ASSERT_TRUE(allocator_.RegisterRange(awake->address, kMiB).ok());
  const std::vector<HeldPart> left = allocator_.Held();
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0].owner, "the default pool, which a registered range keeps awake");
  EXPECT_EQ(left[0].bytes, device_.used_bytes());
}

TEST(HeldTest, WhatIsOutsideIsNamed) {
  FaultyDevice device({.capacity_bytes = 256 * kMiB});
  CachingAllocator other(&device, core::Options("report_leaks:False"));
  CachingAllocator allocator(&device, core::Options("report_leaks:False"));
  ASSERT_TRUE(other.Allocate(40 * kMiB, Stream{0}).ok());
  const std::vector<HeldPart> parts = allocator.Held();
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(parts[0].owner, "outside this allocator: the CUDA context, libraries, other processes");
  EXPECT_EQ(parts[0].bytes, 40 * kMiB);
}

TEST_P(SleepTest, TellsHowFarTheCopyIs) {
  const std::uint64_t bytes = Allocate(100 * kMiB)->size_bytes + Allocate(3 * kMiB)->size_bytes;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> told;
  const SleepProgress progress = [&](std::uint64_t copied, std::uint64_t all) { told.emplace_back(copied, all); };
  for (const bool is_wake : {false, true}) {
    told.clear();
    if (is_wake) {
      ASSERT_TRUE(allocator_.Wake({.progress = progress}).ok());
    } else {
      ASSERT_TRUE(allocator_.Sleep({.tags = {"rollout"}, .host_limit_bytes = 70 * kMiB, .progress = progress}).ok());
    }
    ASSERT_GE(told.size(), 3u);
    EXPECT_EQ(told.back(), std::pair(bytes, bytes));
    for (std::size_t i = 0; i < told.size(); ++i) {
      EXPECT_EQ(told[i].second, bytes);
      EXPECT_LE(told[i].first - (i == 0 ? 0 : told[i - 1].first), 64 * kMiB);
      EXPECT_GT(told[i].first, i == 0 ? 0 : told[i - 1].first);
    }
  }
  told.clear();
  ASSERT_TRUE(allocator_.Sleep({.tags = {"rollout"}, .keep = Keep::kNothing, .progress = progress}).ok());
  EXPECT_TRUE(told.empty()) << "nothing is copied";
}

class SeenPages final : public trace::EventSink {
 public:
  void OnEvent(const trace::Event&, std::uint64_t) override {}
  void OnPages(const trace::PagesOfSleep& pages) override {
    (pages.are_there ? woken : slept) += pages.size_bytes;
    EXPECT_EQ(pages.pool, kPool);
  }
  std::uint64_t slept = 0;
  std::uint64_t woken = 0;
};

// Who has registered pages with a network must know when they go and come.
TEST_P(SleepTest, AnObserverIsToldOfPages) {
  Block* goes = Allocate(30 * kMiB);
  Allocate(3 * kMiB);
  SeenPages seen;
  allocator_.SetObserver(&seen);
  const std::uint64_t before = device_.used_bytes();
  ASSERT_TRUE(allocator_.Sleep({.tags = {"rollout"}}).ok());
  EXPECT_EQ(seen.slept, before);
  allocator_.Free(goes);
  ASSERT_TRUE(allocator_.Wake({}).ok());
  EXPECT_EQ(seen.woken, device_.used_bytes());
  EXPECT_LT(seen.woken, before);
  allocator_.SetObserver(nullptr);
}

TEST_P(SleepTest, AProcessThatDiesAsleepLeavesNothing) {
  const std::string folder = testing::TempDir() + "/asleep";
  std::filesystem::create_directories(folder);
  const pid_t child = fork();
  if (child == 0) {
    FaultyDevice device({.capacity_bytes = 256 * kMiB});
    CachingAllocator allocator(&device, core::Options(std::string(GetParam()) + ",report_leaks:False"));
    Block* block = *allocator.Allocate(30 * kMiB, Stream{0});
    Fill(block, 1);
    const bool slept = allocator.Sleep({.keep = Keep::kFile, .folder = folder}).ok();
    raise(slept ? SIGKILL : SIGABRT);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGKILL) << "it slept";
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

std::size_t OpenFiles() {
  const std::filesystem::directory_iterator files("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(files, std::filesystem::directory_iterator()));
}
std::uint64_t ResidentPages() {
  std::uint64_t all = 0;
  std::uint64_t resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident;
}

TEST_P(SleepTest, TenThousandCyclesLeaveNothing) {
  Block* first = Allocate(70 * kKiB);
  Block* second = Allocate(100 * kKiB);
  Fill(first, 5);
  Fill(second, 6);
  const std::uint64_t used = device_.used_bytes();
  std::size_t files = 0;
  std::uint64_t pages = 0;
  for (int i = 0; i < 10'000; ++i) {
    if (i == 100) {
      files = OpenFiles();
      pages = ResidentPages();
    }
    const Keep keep = i % 10 == 0 ? Keep::kFile : Keep::kHost;
    ASSERT_TRUE(allocator_.Sleep({.tags = {"rollout"}, .keep = keep}).ok());
    ASSERT_EQ(device_.used_bytes(), 0u);
    ASSERT_TRUE(allocator_.Wake({}).ok());
    ASSERT_EQ(device_.used_bytes(), used);
    ASSERT_EQ(device_.host_memories(), 0u);
  }
  EXPECT_TRUE(HoldsOnly(first, 5) && HoldsOnly(second, 6));
  EXPECT_EQ(OpenFiles(), files);
  EXPECT_LT(ResidentPages(), pages + 512) << "2 MiB";
}

// 50,000 steps, of which a quarter sleeps or wakes, and now and then a fault at any call of the device.
// ASHLAR_SLEEP_SEEDS: programs of 200 steps, 250 without it.
void ExpectRandomProgramsLoseNothing(const char* conf, const std::vector<std::string>& also_fail = {}) {
  std::map<std::string, int> failed;
  const char* const given = std::getenv("ASHLAR_SLEEP_SEEDS");
  const std::uint64_t seeds = given == nullptr ? 250 : std::strtoull(given, nullptr, 10);
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const std::vector<SleepStep> steps = RandomSleepProgram(seed, 200);
    const std::string difference = RunSleepProgram(conf, steps, &failed);
    ASSERT_EQ(difference, "") << "seed " << seed << "\n" << SmallSleepProgram(conf, steps);
  }
  std::vector<std::string> calls = {
      "Map", "Unmap", "CopyToHost", "CopyToDevice", "AllocateHost", "SynchronizeStream", "SynchronizeEvent", "Reserve"};
  calls.insert(calls.end(), also_fail.begin(), also_fail.end());
  for (const std::string& call : calls) EXPECT_GT(failed[call], 0) << call << " has never failed";
}

TEST_P(SleepTest, RandomProgramsLoseNothing) { ExpectRandomProgramsLoseNothing(GetParam(), {"ReleaseReservation"}); }

// A recording of a program that sleeps replays to the bit, from any moment on.
class RecordedSleep {
 public:
  RecordedSleep(const char* conf, const std::string& path) : allocator_(&device_, core::Options(conf)), path_(path) {
    EXPECT_TRUE(allocator_.TagPool(kPool, "rollout").ok());
  }

  trace::Snapshot Run(bool begins_asleep) {
    std::vector<Block*> blocks = AllocateSome();
    if (!begins_asleep) StartRecording();
    EXPECT_TRUE(allocator_.Sleep({.tags = {"rollout"}, .keep = Keep::kNothing}).ok());
    if (begins_asleep) StartRecording();
    Block* other = *allocator_.Allocate(70 * kMiB, Stream{0});
    allocator_.Free(blocks[1]);
    allocator_.EmptyCache();
    allocator_.Free(blocks[2]);
    allocator_.Free(other);
    EXPECT_TRUE(allocator_.Wake({}).ok());
    for (Block* block : AllocateSome()) allocator_.Free(block);
    allocator_.Free(blocks[0]);
    EXPECT_TRUE(recorder_->Finish().ok());
    return *trace::Decode(BytesOf(path_));
  }

 private:
  std::vector<Block*> AllocateSome() {
    std::vector<Block*> out;
    for (const std::uint64_t mib : {1, 30, 5}) out.push_back(*allocator_.Allocate(mib * kMiB, Stream{0}, kPool));
    return out;
  }
  void StartRecording() { recorder_ = *Recorder::ToFile(&allocator_, path_, {.overwrites = true}); }

  device::SimDevice device_{{.capacity_bytes = 256 * kMiB}};
  CachingAllocator allocator_;
  const std::string path_;
  std::unique_ptr<Recorder> recorder_;
};

void ExpectRecordingReplays(const char* conf) {
  for (const bool begins_asleep : {false, true}) {
    RecordedSleep program(conf, TempFile("sleep"));
    const trace::Snapshot recording = program.Run(begins_asleep);
    ExpectReplaysExactly(recording);
    ASSERT_EQ(recording.notes.size(), 1u);
    EXPECT_EQ(recording.notes[0].name, "pools_slept");
    const trace::Snapshot again = *trace::Decode(trace::Encode(recording));
    EXPECT_EQ(again.recording->facts, recording.recording->facts);
  }
}

TEST_P(SleepTest, ARecordingReplaysToTheBit) { ExpectRecordingReplays(GetParam()); }

// Under settings without expandable segments a tagged pool has them all the same, and it alone.
class TaggedPoolTest : public testing::Test {
 protected:
  static constexpr const char* kConf = "max_split_size_mb:64,report_leaks:False";
  FaultyDevice device_{{.capacity_bytes = 256 * kMiB}};
  CachingAllocator allocator_{&device_, core::Options(kConf)};
};

TEST_F(TaggedPoolTest, SleepsWhateverTheSettings) {
  ASSERT_TRUE(allocator_.TagPool(kPool, "rollout").ok());
  Block* live = *allocator_.Allocate(5 * kMiB, Stream{0}, kPool);
  Block* small = *allocator_.Allocate(kKiB, Stream{0}, kPool);
  Block* awake = *allocator_.Allocate(3 * kMiB, Stream{0});
  EXPECT_TRUE(live->segment->is_expandable && small->segment->is_expandable);
  EXPECT_FALSE(awake->segment->is_expandable);
  Fill(live, 7);
  const std::uint64_t address = live->address;
  ASSERT_TRUE(allocator_.Sleep({.tags = {"rollout"}}).ok());
  EXPECT_EQ(device_.used_bytes(), 20 * kMiB) << "the segment of cudaMalloc that is awake";
  ASSERT_TRUE(allocator_.Wake({}).ok());
  EXPECT_EQ(live->address, address);
  EXPECT_TRUE(HoldsOnly(live, 7));
  EXPECT_TRUE(allocator_.Validate().ok());
}

TEST_F(TaggedPoolTest, WhatItHadBeforeItsTagSaysWhyItCannotSleep) {
  Block* before = *allocator_.Allocate(3 * kMiB, Stream{0}, kPool);
  ASSERT_TRUE(allocator_.TagPool(kPool, "rollout").ok());
  EXPECT_THAT(std::string(allocator_.Sleep({.tags = {"rollout"}}).status().message()),
              HasSubstr("pool {0, 7} \"rollout\" cannot sleep: 20.00 MiB of it are of cudaMalloc"));
  const std::uint64_t address = before->address;
  allocator_.Free(before);
  EXPECT_EQ((*allocator_.Allocate(2 * kMiB, Stream{0}, kPool))->address, address)
      << "what is free there is used before pages are asked for";
}

TEST_F(TaggedPoolTest, AFailureSaysWhatPagesWouldServe) {
  ASSERT_TRUE(allocator_.TagPool(kPool, "rollout").ok());
  Block* live = *allocator_.Allocate(100 * kMiB, Stream{0}, kPool);
  const absl::Status failed = allocator_.Allocate(157 * kMiB, Stream{0}, kPool).status();
  EXPECT_THAT(std::string(failed.message()), HasSubstr("156.00 MiB"));
  allocator_.Free(live);
}

TEST_F(TaggedPoolTest, RandomProgramsLoseNothing) {
  ExpectRandomProgramsLoseNothing("max_split_size_mb:64", {"AllocateSegment", "FreeSegment"});
}
TEST_F(TaggedPoolTest, ARecordingReplaysToTheBit) { ExpectRecordingReplays("max_split_size_mb:64"); }

TEST_F(TaggedPoolTest, IsServedByADeviceWithoutVirtualMemory) {
  device_.LackVirtualMemory();
  const std::string path = TempFile("plain_tag");
  const absl::StatusOr<std::unique_ptr<Recorder>> recorder = Recorder::ToFile(&allocator_, path, {.overwrites = true});
  ASSERT_TRUE(allocator_.TagPool(kPool, "rollout").ok());
  Block* live = *allocator_.Allocate(3 * kMiB, Stream{0}, kPool);
  EXPECT_FALSE(live->segment->is_expandable);
  EXPECT_TRUE(absl::IsFailedPrecondition(allocator_.Sleep({.tags = {"rollout"}}).status()));
  allocator_.Free(live);
  ASSERT_TRUE((*recorder)->Finish().ok());
  ExpectReplaysExactly(*trace::Decode(BytesOf(path)));
}

}  // namespace
}  // namespace ashlar::core
