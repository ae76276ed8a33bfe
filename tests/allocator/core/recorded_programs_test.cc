// Random programs of one thread, recorded from some moment on into a file and into a ring: pools, graph captures,
// callbacks that allocate, and the state they have led to when the recorder comes. What a seed does is the same every
// time.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "allocator/base/rng.h"
#include "allocator/core/recorder.h"
#include "allocator/device/sim_device.h"
#include "allocator/trace/codec.h"
#include "analyzer/replay/recorded_replay.h"
#include "analyzer/replay/request_replay.h"
#include "tests/allocator/core/locked_device.h"
#include "tests/allocator/core/recorded_file.h"
#include "tests/allocator/core/threads_worker.h"

namespace ashlar::core {
namespace {

struct Recorded {
  const char* name;
  const char* conf;
  std::uint64_t capacity_bytes;
  policy::Compat compat = policy::Compat::kTorch210;
};
std::ostream& operator<<(std::ostream& out, const Recorded& recorded) { return out << recorded.name; }

// What Workers do, and around it pools that several requests share, of which some are captures, and callbacks.
class RecordedProgram {
 public:
  RecordedProgram(const Recorded& recorded, std::uint64_t seed)
      : rng_(seed),
        allocator_conf_(recorded.conf),
        device_({.capacity_bytes = recorded.capacity_bytes}),
        allocator_(&device_, *policy::ParseConf(recorded.conf, recorded.compat, policy::Keys::kAshlar)) {
    for (int i = 0; i < 4; ++i) workers_.emplace_back(i, rng_.Below(1 << 30), allocator_, device_, clock_, mail_);
    if (rng_.Below(2) == 0) allocator_.AddFreeMemoryCallback([this] { return Callback(); });
    if (rng_.Below(4) == 0) {
      allocator_.SetSoftLimit(recorded.capacity_bytes / 2, [this](const auto&) { Callback(); });
    }
  }
  ~RecordedProgram() {
    if (open_.has_value()) ClosePool();
    for (const PoolId pool : pools_) GiveUp(pool);
  }
  RecordedProgram(const RecordedProgram&) = delete;
  RecordedProgram& operator=(const RecordedProgram&) = delete;

  void Run(std::uint64_t steps) {
    for (; steps > 0; --steps) {
      const std::uint64_t dice = rng_.Below(100);
      if (dice < 2) {
        open_.has_value() ? ClosePool() : OpenPool();
      } else if (dice == 2 && !pools_.empty()) {
        const auto pool = pools_.begin() + static_cast<std::ptrdiff_t>(rng_.Below(pools_.size()));
        GiveUp(*pool);
        pools_.erase(pool);
      } else if (dice == 4 && !absl::StrContains(allocator_conf_, "sync_just_enough")) {
        ChangeSettings();
      } else if (dice == 3) {
        allocator_.SetMemoryLimit(rng_.Below(3) == 0 ? std::nullopt : std::optional(rng_.Between(60, 200) * kMiB));
      } else {
        workers_[rng_.Below(workers_.size())].RunSteps(1);
      }
    }
  }

  CachingAllocator& allocator() { return allocator_; }

 private:
  // Whatever may change, whenever, but for sync_just_enough: a recording does not tell for which streams a block waits.
  void ChangeSettings() {
    constexpr const char* kKeys[] = {
        "max_split_size_mb:21",       "max_split_size_mb:40",       "max_non_split_rounding_mb:30",
        "roundup_power2_divisions:4", "search_after_sync:True",     "garbage_collection_threshold:0.6",
        "borrow_most_waits:5",        "borrow_across_streams:True", "roundup_power2_divisions:[4:2,>:1]"};
    std::string conf(allocator_conf_);
    for (std::uint64_t count = rng_.Below(4); count > 0; --count) {
      absl::StrAppend(&conf, conf.empty() ? "" : ",", kKeys[rng_.Below(std::size(kKeys))]);
    }
    const bool has_segments_of_its_own = policy::IsLate(allocator_.options().compat) &&
                                         !allocator_.options().expandable_segments && !absl::StrContains(conf, "split");
    if (has_segments_of_its_own && rng_.Below(3) == 0)
      absl::StrAppend(&conf, conf.empty() ? "" : ",", "large_segment_size_mb:36");
    EXPECT_EQ(allocator_.ChangeSettings(conf), absl::OkStatus());
    EXPECT_EQ(allocator_.Validate(), absl::OkStatus());
  }
  void OpenPool() {
    if (pools_.size() < 3 && rng_.Below(2) == 0) {
      pools_.push_back(allocator_.CreatePool());
      const bool use_on_oom = rng_.Below(2) == 0;
      allocator_.ConfigurePool(pools_.back(), use_on_oom, rng_.Below(3) == 0);
    }
    if (pools_.empty()) return;
    open_ = pools_[rng_.Below(pools_.size())];
    const std::uint64_t which = rng_.Below(3);
    const RouteKind kind = rng_.Below(2) == 0 ? RouteKind::kPlain : RouteKind::kCapture;
    EXPECT_EQ(allocator_.BeginPool(
                  *open_, [which](Stream stream) { return Handle(stream) % 3 == which; }, kind),
              absl::OkStatus());
  }
  void GiveUp(PoolId pool) {
    allocator_.ReleasePool(pool);
    allocator_.EmptyPool(pool).IgnoreError();  // not while it is open
  }
  void ClosePool() {
    EXPECT_EQ(allocator_.EndPool(*open_), absl::OkStatus());
    allocator_.ReleasePool(*open_);
    open_.reset();
  }

  // Frees or not, says so or not, and uses the allocator.
  bool Callback() {
    if (callback_depth_ > 0) return false;
    ++callback_depth_;
    if (!kept_.empty() && rng_.Below(2) == 0) {
      allocator_.Free(kept_.back());
      kept_.pop_back();
    }
    const absl::StatusOr<Block*> block = allocator_.Allocate(rng_.Between(1, 3 * kMiB), Stream{rng_.Below(3)});
    if (block.ok()) kept_.push_back(*block);
    --callback_depth_;
    return rng_.Below(2) == 0;
  }

  Rng rng_;
  const std::string allocator_conf_;
  LockedDevice device_;
  CachingAllocator allocator_;
  Clock clock_;
  Mailbox mail_;
  std::vector<Worker> workers_;
  std::vector<PoolId> pools_;
  std::optional<PoolId> open_;  // may be given up already
  int callback_depth_ = 0;
  std::vector<Block*> kept_;
};

trace::Snapshot Read(const std::string& path) {
  const absl::StatusOr<trace::Snapshot> read = trace::Decode(BytesOf(path));
  EXPECT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(!read.ok() || read->notes.empty()) << read->notes.front().message;
  return read.value_or(trace::Snapshot{});
}

class RecordedProgramTest : public testing::TestWithParam<Recorded> {};

TEST_P(RecordedProgramTest, AFileBegunInTheMiddleReplays) {
  const std::string path = TempFile(GetParam().name);
  for (std::uint64_t seed = 1; seed <= 16 && !HasFailure(); ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    RecordedProgram program(GetParam(), seed);
    Rng rng(seed + 1000);
    program.Run(rng.Below(1500));
    std::unique_ptr<Recorder> recorder =
        *Recorder::ToFile(&program.allocator(), path, {.chunk_bytes = 4096, .overwrites = true});
    program.Run(rng.Between(1, 1500));
    ASSERT_EQ(recorder->Finish(), absl::OkStatus());
    const trace::Snapshot read = Read(path);
    ExpectReplaysExactly(read);
    // A copy says the same.
    const absl::StatusOr<trace::Snapshot> copy = trace::Decode(trace::Encode(read));
    ASSERT_TRUE(copy.ok()) << copy.status();
    EXPECT_EQ(*copy->recording, *read.recording);
  }
  std::remove(path.c_str());
}

TEST_P(RecordedProgramTest, ARingReplays) {
  const std::string path = TempFile(GetParam().name);
  for (std::uint64_t seed = 1; seed <= 10 && !HasFailure(); ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    RecordedProgram program(GetParam(), seed);
    Rng rng(seed + 1000);
    program.Run(rng.Below(1000));
    const std::unique_ptr<Recorder> ring =
        *Recorder::Ring(&program.allocator(), {.ring_bytes = 4 * kKiB, .chunk_bytes = 1024});
    program.Run(rng.Between(1, 2500));
    ASSERT_EQ(ring->Write(path), absl::OkStatus());
    ExpectReplaysExactly(Read(path));
  }
  std::remove(path.c_str());
}

// Which of the segments that are free when the recording begins are returned is a matter of their ages alone: those
// that are older than the mean, here all but the last that was freed.
TEST(RecordedGarbageTest, AgesFromBeforeTheRecordingDecide) {
  const std::string path = TempFile("ages");
  for (const bool is_ring : {false, true}) {
    device::SimDevice device({.capacity_bytes = 200 * kMiB});
    CachingAllocator allocator(&device, Options("garbage_collection_threshold:0.7"));
    ASSERT_EQ(allocator.SetMemoryFraction(0.9), absl::OkStatus());
    allocator.Free(*allocator.Allocate(2 * kMiB, Stream{1}));
    std::vector<Block*> blocks;
    for (int i = 0; i < 4; ++i) blocks.push_back(*allocator.Allocate(30 * kMiB, Stream{0}));
    std::vector<std::uint64_t> old;
    for (std::size_t i : {2, 0, 3, 1}) {
      if (old.size() < 3) old.push_back(blocks[i]->address);
      allocator.Free(blocks[i]);
      for (int search = 0; search < 10; ++search) allocator.Free(*allocator.Allocate(2 * kMiB, Stream{1}));
    }
    std::unique_ptr<Recorder> recorder = is_ring ? *Recorder::Ring(&allocator) : *Recorder::ToFile(&allocator, path);
    ASSERT_TRUE(allocator.Allocate(32 * kMiB, Stream{0}).ok());
    ASSERT_EQ(is_ring ? recorder->Write(path) : recorder->Finish(), absl::OkStatus());
    const trace::Snapshot read = Read(path);
    std::vector<std::uint64_t> returned;
    for (const trace::Event& event : read.device_traces.at(0)) {
      if (event.action == trace::Action::kSegmentFree) returned.push_back(event.address);
    }
    std::sort(old.begin(), old.end());
    EXPECT_EQ(returned, old);
    ExpectReplaysExactly(read);
  }
  std::remove(path.c_str());
}

// A list of requests empties that pool alone too: replayed cold, it makes the recorded calls to the device.
TEST(RecordedPoolTest, AColdReplayEmptiesTheOnePool) {
  const std::string path = TempFile("one_pool");
  device::SimDevice device({.capacity_bytes = kGiB});
  CachingAllocator allocator(&device, Options(""));
  std::unique_ptr<Recorder> recorder = *Recorder::ToFile(&allocator, path);
  const PoolId pool{0, 7};
  for (int round = 0; round < 3; ++round) {
    allocator.Free(*allocator.Allocate(30 * kMiB, Stream{0}));
    allocator.Free(*allocator.Allocate(40 * kMiB, Stream{0}, pool));
    allocator.ReleasePool(pool);
    ASSERT_EQ(allocator.EmptyPool(pool), absl::OkStatus());
  }
  ASSERT_EQ(recorder->Finish(), absl::OkStatus());
  const absl::StatusOr<replay::RecordedReplay> recorded = replay::ReplayAsRecorded({Read(path), 0});
  ASSERT_TRUE(recorded.ok()) << recorded.status();
  replay::RequestReplay cold({.policy = recorded->options, .device = {.capacity_bytes = kGiB}, .memory_fraction = {}});
  ASSERT_EQ(cold.Run(recorded->program.requests), absl::OkStatus());
  EXPECT_EQ(device.calls().MemoryCalls(), 1u + 2 * 3) << "30 MiB once, 40 MiB each round";
  EXPECT_EQ(cold.device().calls().MemoryCalls(), device.calls().MemoryCalls());
  EXPECT_EQ(cold.allocator().stats().reserved_bytes.all().current, static_cast<std::int64_t>(30 * kMiB));
  EXPECT_EQ(cold.allocator().stats().reserved_bytes.all().peak, static_cast<std::int64_t>(70 * kMiB));
  std::remove(path.c_str());
}

INSTANTIATE_TEST_SUITE_P(
    Settings, RecordedProgramTest,
    testing::Values(
        Recorded{"plain", "", 120 * kMiB}, Recorded{"expandable", "expandable_segments:True", 120 * kMiB},
        Recorded{"roomy_expandable", "expandable_segments:True", 4 * kGiB},
        Recorded{"max_split", "max_split_size_mb:21,roundup_power2_divisions:4", 160 * kMiB},
        Recorded{"latest", "", 140 * kMiB, policy::Compat::kTorchLatest},
        Recorded{"latest_expandable", "expandable_segments:True", 140 * kMiB, policy::Compat::kTorchLatest},
        Recorded{"old_expandable", "expandable_segments:True", 140 * kMiB, policy::Compat::kTorch26},
        Recorded{"pages", "policy:ashlar", 120 * kMiB}, Recorded{"roomy_pages", "policy:ashlar", 8 * kGiB},
        Recorded{"latest_pages", "policy:ashlar,per_process_memory_fraction:0.9", 400 * kMiB,
                 policy::Compat::kTorchLatest},
        Recorded{"search_after_sync", "search_after_sync:True", 100 * kMiB},
        Recorded{"borrow", "borrow_across_streams:True", 100 * kMiB},
        Recorded{"bounded_borrow", "borrow_across_streams:True,borrow_most_waits:20", 100 * kMiB},
        Recorded{"sync_just_enough", "sync_just_enough:True", 100 * kMiB},
        Recorded{"rejects", "throw_on_cudamalloc_oom:True,per_process_memory_fraction:0.8", 100 * kMiB},
        Recorded{"garbage", "garbage_collection_threshold:0.5", 140 * kMiB},
        Recorded{"much_garbage", "garbage_collection_threshold:0.4,per_process_memory_fraction:0.9", 600 * kMiB},
        Recorded{"latest_garbage", "garbage_collection_threshold:0.3,per_process_memory_fraction:0.9", 400 * kMiB,
                 policy::Compat::kTorchLatest},
        Recorded{"expandable_garbage",
                 "garbage_collection_threshold:0.3,per_process_memory_fraction:0.9,expandable_segments:True",
                 300 * kMiB}),
    [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace ashlar::core
