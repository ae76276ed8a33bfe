// Random programs on eight threads: streams of their own and shared ones, blocks freed by other threads, record_stream,
// empty_cache, out of memory, statistics and snapshots taken meanwhile. What each thread saw is stamped by one clock
// and compared afterwards: no two blocks overlap in time and place, and the statistics are the threads' own sums.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "allocator/base/rng.h"
#include "allocator/core/caching_allocator.h"
#include "allocator/core/inspect.h"
#include "allocator/policy/placement_plan.h"
#include "gtest/gtest.h"
#include "tests/allocator/core/locked_device.h"
#include "tests/allocator/core/threads_worker.h"

namespace ashlar::core {
namespace {

constexpr int kThreadsThreads = 8;

struct Setting {
  const char* name;
  std::string conf;
  std::uint64_t capacity_bytes;
  bool has_recorder;
  std::uint64_t planned_segment_bytes = 0;  // of each lane of a plan that the threads leave all the time; 0: no plan
};
std::ostream& operator<<(std::ostream& out, const Setting& setting) { return out << setting.name; }

// Lanes for streams and pools of every kind, whose requests follow each other as it happens and lie on each other.
std::shared_ptr<const policy::PlacementPlan> PlanOfChance(std::uint64_t segment_bytes) {
  Rng rng(5);
  policy::PlacementPlan plan;
  for (std::uint64_t i = 0; i < 30; ++i) {
    policy::LanePlan lane;
    lane.use = i < 2    ? policy::LaneUse::kDefaultStream
               : i < 20 ? policy::LaneUse::kOtherStream
                        : policy::LaneUse::kPrivatePool;
    lane.is_small = i % 2 == 1;
    lane.segment_bytes = lane.is_small ? 2 * kMiB : segment_bytes;
    for (std::uint32_t number = 2; number < 200; ++number) {
      policy::PlannedRequest request;
      request.size_bytes = lane.is_small ? rng.Between(1, 128) * policy::kMinBlockBytes
                                         : rng.Between(2049, 12288) * policy::kMinBlockBytes;
      while (rng.Below(3) != 0) {
        request.offsets.push_back(rng.Below((lane.segment_bytes - request.size_bytes) / policy::kMinBlockBytes + 1) *
                                  policy::kMinBlockBytes);
      }
      const auto parent = static_cast<std::uint32_t>(rng.Below(4) == 0 ? rng.Below(number) : number - 1);
      lane.requests[parent].next.push_back(number);
      lane.requests.push_back(std::move(request));
    }
    plan.lanes.push_back(std::move(lane));
  }
  return std::make_shared<const policy::PlacementPlan>(std::move(plan));
}

// At no time do two blocks that were surely live share a byte.
void ExpectDisjoint(const std::vector<Life>& lives) {
  struct Edge {
    std::uint64_t time;
    bool is_begin;
    const Life* life;
  };
  std::vector<Edge> edges;
  for (const Life& life : lives) {
    edges.push_back({life.from, true, &life});
    edges.push_back({life.to, false, &life});
  }
  std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) { return a.time < b.time; });
  std::map<std::uint64_t, const Life*> live;
  for (const Edge& edge : edges) {
    if (!edge.is_begin) {
      live.erase(edge.life->address);
      continue;
    }
    const auto [at, is_new] = live.emplace(edge.life->address, edge.life);
    ASSERT_TRUE(is_new) << edge.life->address;
    if (at != live.begin()) {
      const Life& below = *std::prev(at)->second;
      ASSERT_LE(below.address + below.size_bytes, edge.life->address);
    }
    if (std::next(at) != live.end()) {
      ASSERT_LE(edge.life->address + edge.life->size_bytes, std::next(at)->first);
    }
  }
}

// The greatest sum of requests over time, where a block counts in [begin, end).
std::int64_t PeakRequested(const std::vector<Life>& lives, std::uint64_t Life::*begin, std::uint64_t Life::*end) {
  std::vector<std::pair<std::uint64_t, std::int64_t>> edges;
  for (const Life& life : lives) {
    edges.emplace_back(life.*begin, static_cast<std::int64_t>(life.requested_bytes));
    edges.emplace_back(life.*end, -static_cast<std::int64_t>(life.requested_bytes));
  }
  std::sort(edges.begin(), edges.end());
  std::int64_t sum = 0;
  std::int64_t peak = 0;
  for (const auto& [time, bytes] : edges) peak = std::max(peak, sum += bytes);
  return peak;
}

// Takes every event as it comes: an allocation must not lie where a block is, a free must find its block.
class Ledger final : public trace::EventSink {
 public:
  void OnFact(const trace::AnyFact& fact) override { planned_ += trace::IsAny<trace::fact::PlacedByPlan>(fact); }
  void OnEvent(const trace::Event& event, std::uint64_t block_size_bytes) override {
    if (event.action == trace::Action::kAlloc) {
      is_sound_ &= live_.emplace(event.address, block_size_bytes).second;
      ++allocations_;
    } else if (event.action == trace::Action::kFreeCompleted) {
      is_sound_ &= live_.erase(event.address) == 1;
    }
  }
  bool is_sound() const { return is_sound_; }
  std::uint64_t allocations() const { return allocations_; }
  std::uint64_t planned() const { return planned_; }

 private:
  std::map<std::uint64_t, std::uint64_t> live_;
  bool is_sound_ = true;
  std::uint64_t allocations_ = 0;
  std::uint64_t planned_ = 0;
};

class ThreadsTest : public testing::TestWithParam<Setting> {};

TEST_P(ThreadsTest, RandomPrograms) {
  constexpr int kSteps = 3000;
  const Setting& setting = GetParam();
  device::SimDeviceOptions options;
  options.capacity_bytes = setting.capacity_bytes;
  LockedDevice device(options);
  policy::Options settings = *policy::ParseConf(setting.conf, policy::Compat::kTorch210, policy::Keys::kAshlar);
  if (setting.planned_segment_bytes != 0) settings.plan = PlanOfChance(setting.planned_segment_bytes);
  CachingAllocator allocator(&device, settings);
  allocator.SetFailureReports(setting.planned_segment_bytes == 0);  // a planned segment that the device refuses is told
  std::atomic<int> crossings{0};
  allocator.SetSoftLimitCallback([&](const SoftLimitCrossing&) {
    ++crossings;
    allocator.EmptyCache();
  });
  Ledger ledger;
  if (setting.has_recorder) allocator.SetSink(&ledger);
  Clock clock;
  Mailbox mail;
  std::vector<Worker> workers;
  for (int i = 0; i < kThreadsThreads; ++i) {
    workers.emplace_back(i, static_cast<std::uint64_t>(i) + 1, allocator, device, clock, mail);
  }
  std::vector<std::thread> threads;
  threads.reserve(kThreadsThreads);
  for (Worker& worker : workers) threads.emplace_back([&worker] { worker.Run(kSteps); });
  for (std::thread& thread : threads) thread.join();
  workers.front().FreeMail();
  device.CompleteAllWork();
  allocator.EmptyCache();

  std::vector<Life> lives;
  std::uint64_t failures = 0;
  for (const Worker& worker : workers) {
    lives.insert(lives.end(), worker.lives().begin(), worker.lives().end());
    failures += worker.failures();
  }
  ExpectDisjoint(lives);
  ASSERT_EQ(allocator.Validate(), absl::OkStatus());
  const Stats stats = allocator.stats();
  EXPECT_EQ(stats.allocation.all().allocated, static_cast<std::int64_t>(lives.size()));
  EXPECT_EQ(stats.num_ooms, failures);
  EXPECT_EQ(crossings > 0, allocator.options().soft_limit_bytes.has_value());
  EXPECT_LE(Inspection(allocator).heap().private_pairs().size(), 3u) << "pools by handle are gone";
  EXPECT_EQ(failures > 0, setting.capacity_bytes < kGiB) << failures << " requests ran out of memory";
  EXPECT_EQ(stats.allocation.all().current, 0);
  EXPECT_EQ(stats.allocated_bytes.all().current, 0);
  EXPECT_EQ(stats.active_bytes.all().current, 0);
  EXPECT_EQ(stats.requested_bytes.all().current, 0);
  EXPECT_EQ(stats.inactive_split.all().current, 0);
  EXPECT_EQ(stats.inactive_split_bytes.all().current, 0);
  std::int64_t requested = 0;
  for (const Life& life : lives) requested += static_cast<std::int64_t>(life.requested_bytes);
  EXPECT_EQ(stats.requested_bytes.all().allocated, requested);
  // Pending blocks count as requested, so only the lower end is a bound by the lives alone.
  EXPECT_GE(stats.requested_bytes.all().peak, PeakRequested(lives, &Life::from, &Life::to));
  if (setting.has_recorder) {
    EXPECT_TRUE(ledger.is_sound());
    EXPECT_EQ(ledger.allocations(), lives.size());
    EXPECT_EQ(ledger.planned() > 0, setting.planned_segment_bytes != 0);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Settings, ThreadsTest,
    testing::Values(
        Setting{"roomy", "", 4 * kGiB, false}, Setting{"tight", "", 120 * kMiB, false},
        Setting{"recorded", "", 120 * kMiB, true}, Setting{"expandable", "expandable_segments:True", 120 * kMiB, false},
        Setting{"pages", "policy:ashlar", 120 * kMiB, false},
        Setting{"max_split", "max_split_size_mb:21,roundup_power2_divisions:4", 160 * kMiB, false},
        Setting{"garbage", "garbage_collection_threshold:0.5", 160 * kMiB, false},
        Setting{"borrow", "search_after_sync:True,borrow_across_streams:True", 120 * kMiB, false},
        Setting{"soft_limit", "sync_just_enough:True,borrow_across_streams:True,soft_limit_mb:90", 120 * kMiB, false},
        Setting{"planned", "", 4 * kGiB, false, 64 * kMiB}, Setting{"planned_tight", "", 160 * kMiB, false, 16 * kMiB},
        Setting{"planned_recorded", "", 4 * kGiB, true, 64 * kMiB}),
    [](const auto& tested) { return tested.param.name; });

// Without record_stream the peak has bounds from both sides: it is at least what was surely live at once, and at most
// what may have been. Every thread keeps to its own stream, so that nothing but the shares of the peak is between them.
TEST(ThreadsTest, PeaksAreTheSumsOfAllThreads) {
  for (std::uint64_t round = 0; round < 20; ++round) {
    device::SimDevice device({});
    CachingAllocator allocator(&device, *policy::ParseConf("", policy::Compat::kTorch210));
    Clock clock;
    std::array<std::vector<Life>, 4> lives;
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < lives.size(); ++i) {
      threads.emplace_back([&, i] {
        Rng rng(round * 31 + i);
        std::vector<Held> held;
        for (int step = 0; step < 400 || !held.empty(); ++step) {
          if (step < 400 && rng.Below(30) >= held.size()) {
            Held fresh;
            fresh.life.requested_bytes = rng.Between(1, 3 * kMiB);
            fresh.life.asked = clock.Next();
            fresh.block = *allocator.Allocate(fresh.life.requested_bytes, Stream{i});
            fresh.life.from = clock.Next();
            held.push_back(fresh);
          } else {
            std::swap(held[rng.Below(held.size())], held.back());
            held.back().life.to = clock.Next();
            allocator.Free(held.back().block);
            held.back().life.gone = clock.Next();
            lives[i].push_back(held.back().life);
            held.pop_back();
          }
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    std::vector<Life> all;
    for (const std::vector<Life>& part : lives) all.insert(all.end(), part.begin(), part.end());
    const std::int64_t peak = allocator.stats().requested_bytes.all().peak;
    EXPECT_GE(peak, PeakRequested(all, &Life::from, &Life::to));
    EXPECT_LE(peak, PeakRequested(all, &Life::asked, &Life::gone));
  }
}

// A recorder that comes and goes while threads allocate: what it sees in between is one consistent story.
TEST(ThreadsTest, ARecorderMayComeAndGo) {
  device::SimDevice device({});
  CachingAllocator allocator(&device, *policy::ParseConf("", policy::Compat::kTorch210));
  std::atomic<bool> is_over{false};
  std::vector<std::thread> threads;
  for (std::uint64_t i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      Rng rng(i);
      std::vector<Block*> blocks;
      while (!is_over.load(std::memory_order_relaxed) || !blocks.empty()) {
        if (!is_over.load(std::memory_order_relaxed) && rng.Below(20) >= blocks.size()) {
          blocks.push_back(*allocator.Allocate(rng.Between(1, 2 * kMiB), Stream{rng.Below(3)}));
        } else {
          allocator.Free(blocks.back());
          blocks.pop_back();
        }
      }
    });
  }
  for (int round = 0; round < 200; ++round) {
    // Blocks that were live before are unknown to this ledger: it must only never see one twice.
    class Seen final : public trace::EventSink {
     public:
      void OnEvent(const trace::Event& event, std::uint64_t) override {
        if (event.action == trace::Action::kAlloc) is_sound &= live.insert({event.address, true}).second;
        if (event.action == trace::Action::kFreeCompleted) live.erase(event.address);
      }
      std::map<std::uint64_t, bool> live;
      bool is_sound = true;
    } seen;
    allocator.SetSink(&seen);
    std::this_thread::yield();
    allocator.SetSink(nullptr);
    ASSERT_TRUE(seen.is_sound) << round;
  }
  is_over = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(allocator.Validate(), absl::OkStatus());
  EXPECT_EQ(allocator.stats().allocation.all().current, 0);
}

TEST(ThreadsTest, AFreeMemoryCallbackMayUseTheAllocator) {
  device::SimDeviceOptions options;
  options.capacity_bytes = 64 * kMiB;
  device::SimDevice device(options);
  CachingAllocator allocator(&device, *policy::ParseConf("", policy::Compat::kTorch210));
  Block* reserve = *allocator.Allocate(40 * kMiB, Stream{0});
  allocator.AddFreeMemoryCallback([&] {
    if (reserve == nullptr) return false;
    allocator.Free(reserve);
    reserve = nullptr;
    return true;
  });
  const absl::StatusOr<Block*> block = allocator.Allocate(40 * kMiB, Stream{0});
  ASSERT_TRUE(block.ok()) << block.status();
  EXPECT_EQ(allocator.stats().num_alloc_retries, 0u);
  EXPECT_FALSE(allocator.Allocate(40 * kMiB, Stream{0}).ok());
}

// 32 planned segments come while others are being looked up; every address goes back to the planned segment it is from.
TEST(ThreadsTest, ArenasMayComeWhileOthersAreInUse) {
  device::SimDevice device({});
  CachingAllocator allocator(&device, *policy::ParseConf("", policy::Compat::kTorch210));
  std::vector<std::thread> threads;
  for (std::uint64_t i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (std::uint64_t stream = 0; stream < 60; ++stream) {
        std::vector<std::uint64_t> addresses;
        for (std::uint64_t n = 1; n <= 8; ++n) {
          addresses.push_back(*allocator.AllocateAddress(n * 200 * kKiB, Stream{i * 100 + stream}));
        }
        for (const std::uint64_t address : addresses) EXPECT_TRUE(allocator.FreeAddress(address));
        for (const std::uint64_t address : addresses) EXPECT_FALSE(allocator.FreeAddress(address + 1));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(allocator.Validate(), absl::OkStatus());
  EXPECT_EQ(allocator.stats().allocation.all().allocated, 4 * 60 * 8);
  EXPECT_EQ(allocator.stats().allocation.all().current, 0);
}

}  // namespace
}  // namespace ashlar::core
