// Threads that the cache serves at once, each at its own thread cache, are recorded without taking turns; and still the
// recording replays to the same decisions and the same state, whatever happened between.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "allocator/base/rng.h"
#include "allocator/core/recorder.h"
#include "allocator/trace/codec.h"
#include "tests/allocator/core/locked_device.h"
#include "tests/allocator/core/recorded_file.h"
#include "tests/allocator/trace/printed_snapshot.h"
#include "tests/mailbox.h"

namespace ashlar::core {
namespace {

// What a run is like: drawn from its seed.
struct RunShape {
  RunShape(Rng& rng, const char* its_conf)
      : conf(its_conf),
        threads(static_cast<int>(rng.Between(1, 6))),
        chunk_bytes(std::size_t{1024} << rng.Below(6)),
        is_ring(rng.Below(3) == 0),
        seldom(rng.Between(20, 400)),
        shared_streams(rng.Below(3)),
        scopes(rng.Below(3) == 0),
        warm_up(rng.Below(2) == 0 ? 0 : 400) {}
  const char* const conf;
  const int threads;
  const std::size_t chunk_bytes;
  const bool is_ring;
  const std::uint64_t seldom;          // one step of so many does something rare
  const std::uint64_t shared_streams;  // that several threads use, besides their own
  const bool scopes;
  const int warm_up;  // steps before the recorder comes
};

struct Handed {
  Block* block = nullptr;  // nullptr: by address
  std::uint64_t address = 0;
};
using HandedMailbox = tests::Mailbox<Handed>;

class QuietWorker {
 public:
  QuietWorker(std::uint64_t index, std::uint64_t seed, const RunShape& shape, CachingAllocator& allocator,
              LockedDevice& device, HandedMailbox& mail)
      : index_(index), rng_(seed), shape_(shape), allocator_(allocator), device_(device), mail_(mail) {}

  void Run(int steps) {
    for (int i = 0; i < steps; ++i) {
      if (shape_.scopes && rng_.Below(50) == 0) {
        ASHLAR_SCOPE(rng_.Below(2) == 0 ? "forward" : "backward");
        for (int j = 0; j < 10; ++j) Step();
      }
      Step();
    }
  }
  void FreeAll() {
    while (!held_.empty()) FreeOne();
  }

 private:
  void Step() {
    if (rng_.Below(shape_.seldom) == 0) return Rare();
    if (rng_.Below(8) == 0) return PassOn();
    held_.size() < 1 + rng_.Below(40) ? Allocate() : FreeOne();
  }

  void Rare() {
    switch (rng_.Below(8)) {
      case 0:
        return allocator_.EmptyCache();
      case 1:
        if (!held_.empty() && held_.back().block != nullptr) {
          allocator_.RecordStream(held_.back().block, Stream{99});
          FreeOne(/*last=*/true);
        }
        return device_.CompleteAllWork();
      case 2:
        return UsePool(rng_.Below(2) == 0 ? RouteKind::kPlain : RouteKind::kCapture);
      case 3:
        EXPECT_GE(allocator_.stats().allocated_bytes.all().current, 0);
        return;
      case 4:
        return allocator_.SetMemoryLimit(rng_.Between(100, 200) * kMiB);
      case 5:
        return ChangeSettings();
      default:
        return Allocate(rng_.Between(1, 12 * kMiB));
    }
  }

  // Of those in force but for what may change.
  void ChangeSettings() {
    constexpr const char* kKeys[] = {"roundup_power2_divisions:4", "max_non_split_rounding_mb:32",
                                     "search_after_sync:True", "max_split_size_mb:24",
                                     "garbage_collection_threshold:0.5"};
    const std::string key = kKeys[rng_.Below(std::size(kKeys))];
    const std::string conf(shape_.conf);
    EXPECT_EQ(allocator_.ChangeSettings(conf.empty() ? key : absl::StrCat(conf, ",", key)), absl::OkStatus());
  }

  void UsePool(RouteKind kind) {
    const PoolId pool = allocator_.CreatePool();
    const std::uint64_t mine = OwnStream();
    ASSERT_EQ(
        allocator_.BeginPool(pool, [mine](Stream stream) { return Handle(stream) == mine; }, kind), absl::OkStatus());
    for (int i = 0; i < 6; ++i) Allocate();
    EXPECT_EQ(allocator_.EndPool(pool), absl::OkStatus());
    for (int user = 0; user < 2; ++user) allocator_.ReleasePool(pool);
  }

  std::uint64_t OwnStream() const { return 1000 + index_; }
  Stream RandomStream() {
    return Stream{shape_.shared_streams > 0 && rng_.Below(3) == 0 ? rng_.Below(shape_.shared_streams) : OwnStream()};
  }

  void Allocate() { Allocate(rng_.Below(4) == 0 ? rng_.Between(1, 3 * kMiB) : rng_.Between(1, 100 * kKiB)); }
  void Allocate(std::uint64_t bytes) {
    const PoolId pool = rng_.Below(10) == 0 ? PoolId{5, 1} : PoolId{};
    if (rng_.Below(2) == 0) {
      const absl::StatusOr<std::uint64_t> address = allocator_.AllocateAddress(bytes, RandomStream(), pool);
      if (address.ok()) held_.push_back({nullptr, *address});
    } else {
      const absl::StatusOr<Block*> block = allocator_.Allocate(bytes, RandomStream(), pool);
      if (block.ok()) held_.push_back({*block, (*block)->address});
    }
  }

  void FreeOne(bool last = false) {
    if (held_.empty()) return;
    if (!last) std::swap(held_[rng_.Below(held_.size())], held_.back());
    const Handed handed = held_.back();
    held_.pop_back();
    if (handed.block != nullptr) return allocator_.Free(handed.block);
    EXPECT_TRUE(allocator_.FreeAddress(handed.address));
  }

  // A block of this thread to another one, and another's to this.
  void PassOn() {
    if (!held_.empty() && rng_.Below(2) == 0) {
      mail_.Put(held_.back());
      held_.pop_back();
    }
    if (const std::optional<Handed> handed = mail_.Take()) held_.push_back(*handed);
  }

  std::uint64_t index_;
  Rng rng_;
  const RunShape& shape_;
  CachingAllocator& allocator_;
  LockedDevice& device_;
  HandedMailbox& mail_;
  std::vector<Handed> held_;
};

// No reader may see time go back, and no block freed before it was allocated: that follows from the replay, but for
// what was live at the start.
void ExpectTimesInOrder(const trace::Snapshot& recording) {
  std::int64_t last = 0;
  for (const trace::Event& event : recording.device_traces.at(0)) {
    ASSERT_GE(event.time_us, last);
    last = event.time_us;
  }
}

class ParallelRecordingTest : public testing::TestWithParam<const char*> {
 protected:
  static void RunSeed(std::uint64_t seed) {
    Rng rng(seed);
    const RunShape shape(rng, GetParam());
    device::SimDeviceOptions device_options;
    device_options.capacity_bytes = rng.Below(3) == 0 ? 200 * kMiB : 4 * kGiB;
    LockedDevice device(device_options);
    CachingAllocator allocator(&device,
                               *policy::ParseConf(GetParam(), policy::Compat::kTorch210, policy::Keys::kAshlar));
    HandedMailbox mail;
    std::vector<QuietWorker> workers;
    for (int i = 0; i < shape.threads; ++i) {
      workers.emplace_back(i, rng.Below(1 << 30), shape, allocator, device, mail);
    }
    const auto run_all = [&](int steps) {
      std::vector<std::thread> threads;
      for (QuietWorker& worker : workers) threads.emplace_back([&worker, steps] { worker.Run(steps); });
      for (std::thread& thread : threads) thread.join();
    };
    run_all(shape.warm_up);
    const std::string path = TempFile(absl::StrCat("parallel_", seed));
    const std::unique_ptr<Recorder> recorder =
        shape.is_ring ? *Recorder::Ring(&allocator, {.ring_bytes = 8 * kKiB, .chunk_bytes = shape.chunk_bytes})
                      : *Recorder::ToFile(&allocator, path, {.chunk_bytes = shape.chunk_bytes});
    run_all(1500);
    trace::Snapshot live;
    live.segments = allocator.Segments();
    ASSERT_EQ(shape.is_ring ? recorder->Write(path) : recorder->Finish(), absl::OkStatus());
    const absl::StatusOr<trace::Snapshot> read = trace::Decode(BytesOf(path));
    std::remove(path.c_str());
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_TRUE(read->notes.empty()) << read->notes.front().message;
    EXPECT_EQ(read->recording->events_before + read->device_traces.at(0).size(), recorder->event_count());
    trace::Snapshot end;
    end.segments = read->segments;
    for (trace::SnapshotSegment& segment : end.segments) {
      for (trace::SnapshotBlock& block : segment.blocks) block.stack = trace::kNoStack;
    }
    EXPECT_EQ(trace::PrintedSegments(end), trace::PrintedSegments(live));
    ExpectTimesInOrder(*read);
    ExpectReplaysExactly(*read);
    for (QuietWorker& worker : workers) worker.FreeAll();
    EXPECT_EQ(allocator.Validate(), absl::OkStatus());
  }
};

TEST_P(ParallelRecordingTest, AnyProgramReplaysToItsDecisionsAndState) {
  for (std::uint64_t seed = 1; seed <= 24 && !HasFailure(); ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    RunSeed(seed);
  }
}

INSTANTIATE_TEST_SUITE_P(Settings, ParallelRecordingTest,
                         testing::Values("", "expandable_segments:True", "policy:ashlar", "max_split_size_mb:21",
                                         "free_order:per-segment-counter",
                                         "garbage_collection_threshold:0.6,per_process_memory_fraction:0.9"),
                         [](const auto& tested) {
                           std::string name = absl::StrCat("conf_", tested.index);
                           return name;
                         });

// The peaks that a replay of the recorded order reaches are the run's own: no thread cache passes its share of the room
// below them, in whatever order the thread caches' events are put.
TEST(ParallelRecordingPeaksTest, AReplayReachesTheRunsPeaks) {
  LockedDevice device({.capacity_bytes = 4 * kGiB});
  CachingAllocator allocator(&device, Options(""));
  const std::string path = TempFile("peaks");
  const std::unique_ptr<Recorder> recorder = *Recorder::ToFile(&allocator, path);
  std::vector<std::thread> threads;
  for (std::uint64_t i = 0; i < 3; ++i) {
    threads.emplace_back([&allocator, i] {
      Rng rng(i);
      std::vector<Block*> blocks;
      for (int step = 0; step < 20000; ++step) {
        if (blocks.size() < rng.Below(50)) {
          blocks.push_back(*allocator.Allocate(rng.Between(1, 300 * kKiB), Stream{i}));
        } else if (!blocks.empty()) {
          std::swap(blocks[rng.Below(blocks.size())], blocks.back());
          allocator.Free(blocks.back());
          blocks.pop_back();
        }
      }
      for (Block* block : blocks) allocator.Free(block);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::int64_t peak_bytes = allocator.stats().allocated_bytes.all().peak;
  const std::int64_t peak_blocks = allocator.stats().allocation.all().peak;
  ASSERT_EQ(recorder->Finish(), absl::OkStatus());
  const absl::StatusOr<trace::Snapshot> read = trace::Decode(BytesOf(path));
  std::remove(path.c_str());
  ASSERT_TRUE(read.ok()) << read.status();
  std::int64_t bytes = 0, most_bytes = 0, blocks = 0, most_blocks = 0;
  for (const trace::Event& event : read->device_traces.at(0)) {
    const std::int64_t sign = event.action == trace::Action::kAlloc           ? 1
                              : event.action == trace::Action::kFreeRequested ? -1
                                                                              : 0;
    bytes += sign * static_cast<std::int64_t>(event.block_size_bytes);
    blocks += sign;
    most_bytes = std::max(most_bytes, bytes);
    most_blocks = std::max(most_blocks, blocks);
  }
  EXPECT_EQ(most_bytes, peak_bytes);
  EXPECT_EQ(most_blocks, peak_blocks);
}

}  // namespace
}  // namespace ashlar::core
