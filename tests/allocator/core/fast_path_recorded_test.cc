// What the cache serves by itself against the same allocator under a recorder, where every request goes through the
// exclusive section: the same addresses, statistics and blocks, in programs that mostly free what they allocated last.
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "allocator/base/rng.h"
#include "allocator/core/caching_allocator.h"
#include "allocator/core/pointer_map.h"
#include "allocator/device/sim_device.h"
#include "gtest/gtest.h"
#include "tests/allocator/core/no_sink.h"

namespace ashlar::core {
namespace {

struct Setting {
  std::string conf;
  policy::FreeOrder order = policy::FreeOrder::kAddress;
};

std::vector<std::int64_t> Numbers(const Stats& stats) {
  std::vector<std::int64_t> out;
  for (const PoolStat* stat :
       {&stats.allocation, &stats.active, &stats.segment, &stats.inactive_split, &stats.allocated_bytes,
        &stats.active_bytes, &stats.requested_bytes, &stats.reserved_bytes, &stats.inactive_split_bytes}) {
    for (const PoolKind kind : {PoolKind::kAll, PoolKind::kSmall, PoolKind::kLarge}) {
      const Stat& one = (*stat)[kind];
      out.insert(out.end(), {one.current, one.peak, one.allocated});
    }
  }
  return out;
}

std::vector<std::uint64_t> Numbers(const std::vector<trace::SnapshotSegment>& segments) {
  std::vector<std::uint64_t> out;
  for (const trace::SnapshotSegment& segment : segments) {
    out.insert(out.end(), {segment.address, segment.size_bytes, Handle(segment.stream)});
    for (const trace::SnapshotBlock& block : segment.blocks) {
      out.insert(out.end(), {block.address, block.size_bytes, block.requested_bytes.value_or(0),
                             static_cast<std::uint64_t>(block.state)});
    }
  }
  return out;
}

// A thread that does one thing at a time, while the caller waits.
class Hand {
 public:
  Hand() : thread_([this] { Run(); }) {}
  ~Hand() {
    Do(nullptr);
    thread_.join();
  }
  void Do(const std::function<void()>& act) {
    std::unique_lock<std::mutex> lock(mutex_);
    act_ = &act;
    changed_.notify_all();
    changed_.wait(lock, [this] { return act_ == nullptr; });
  }

 private:
  void Run() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (bool is_over = false; !is_over;) {
      changed_.wait(lock, [this] { return act_ != nullptr; });
      is_over = *act_ == nullptr;
      if (!is_over) (*act_)();
      act_ = nullptr;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void()>* act_ = nullptr;  // what is to be done
  std::thread thread_;
};

// One allocator, and the names its blocks go by.
class Subject {
 public:
  Subject(const Setting& setting, bool is_recorded) : device_(DeviceOptions()), allocator_(&device_, Options(setting)) {
    if (is_recorded) allocator_.SetSink(&sink_);
  }

  // Whose thread calls the allocator from now on.
  void GoTo(Hand* hand) { hand_ = hand; }

  // 0 when there is no memory.
  std::uint64_t Allocate(std::uint64_t bytes, Stream stream, bool by_address) {
    std::uint64_t out = 0;
    Do([&] { out = AllocateHere(bytes, stream, by_address); });
    return out;
  }
  void Free(std::size_t i, bool frees_twice) {
    Do([&] { FreeHere(i, frees_twice); });
  }
  void Use(std::size_t i, Stream stream) {
    if (live_[i].first != nullptr) Do([&] { allocator_.RecordStream(live_[i].first, stream); });
  }
  void FinishWork() { device_.CompleteAllWork(); }
  void EmptyCache() {
    Do([&] { allocator_.EmptyCache(); });
  }
  std::size_t live() const { return live_.size(); }
  CachingAllocator& allocator() { return allocator_; }

 private:
  void Do(const std::function<void()>& act) {
    if (hand_ == nullptr) return act();
    hand_->Do(act);
  }
  std::uint64_t AllocateHere(std::uint64_t bytes, Stream stream, bool by_address) {
    if (by_address) {
      const absl::StatusOr<std::uint64_t> address = allocator_.AllocateAddress(bytes, stream);
      if (address.ok()) live_.push_back({nullptr, *address});
      return address.value_or(0);
    }
    const absl::StatusOr<Block*> block = allocator_.Allocate(bytes, stream);
    if (!block.ok()) return 0;
    live_.push_back({*block, (*block)->address});
    return (*block)->address;
  }
  void FreeHere(std::size_t i, bool frees_twice) {
    const auto [block, address] = live_[i];
    live_.erase(live_.begin() + static_cast<std::ptrdiff_t>(i));
    if (block != nullptr) return allocator_.Free(block);
    EXPECT_TRUE(allocator_.FreeAddress(address));
    if (!frees_twice) return;
    EXPECT_FALSE(allocator_.FreeAddress(address));
  }

  static device::SimDeviceOptions DeviceOptions() {
    device::SimDeviceOptions options;
    options.capacity_bytes = 400 * kMiB;
    return options;
  }
  static policy::Options Options(const Setting& setting) {
    policy::Options options = *policy::ParseConf(setting.conf, policy::Compat::kTorchLatest);
    options.free_order = setting.order;
    return options;
  }

  device::SimDevice device_;
  NoSink sink_;
  CachingAllocator allocator_;
  std::vector<std::pair<Block*, std::uint64_t>> live_;
  Hand* hand_ = nullptr;  // nullptr: the caller's own
};

void ExpectSame(Subject& served, Subject& recorded, const std::string& where) {
  ASSERT_EQ(Numbers(served.allocator().stats()), Numbers(recorded.allocator().stats())) << where;
  ASSERT_EQ(Numbers(served.allocator().Segments()), Numbers(recorded.allocator().Segments())) << where;
  ASSERT_EQ(served.allocator().Validate(), absl::OkStatus()) << where;
}

// With hands, the calls of what is served go from one thread to another now and then.
void FastPathRunProgram(const Setting& setting, std::uint64_t seed, std::size_t hand_count = 0) {
  Rng rng(seed);
  std::vector<std::unique_ptr<Hand>> hands;
  while (hands.size() < hand_count) hands.push_back(std::make_unique<Hand>());
  Subject served(setting, false);
  Subject recorded(setting, true);
  const std::uint64_t looks = rng.Between(50, 1000);
  const std::uint64_t streams = seed % 2 == 0 ? 2 : 12;
  const std::uint64_t out_of_order = rng.Below(4) == 0 ? 30 : 3;
  // Few sizes, so that requests repeat; asked for with fewer bytes than they round to.
  std::vector<std::uint64_t> sizes;
  for (int i = 0; i < 4; ++i) sizes.push_back(512 * rng.Between(1, rng.Below(2) == 0 ? 40 : 30'000));
  for (int step = 0; step < 1500; ++step) {
    const std::string where = setting.conf + " seed " + std::to_string(seed) + " step " + std::to_string(step);
    if (!hands.empty() && rng.Below(60) == 0) served.GoTo(hands[rng.Below(hands.size())].get());
    const std::uint64_t dice = rng.Below(100);
    if (dice < 48 || served.live() == 0) {
      const std::uint64_t bytes = sizes[rng.Below(sizes.size())] - rng.Below(500);
      const Stream stream{streams > 2 || rng.Below(8) == 0 ? 7 + rng.Below(streams - 1) : 0};
      const bool by_address = rng.Below(2) == 0;
      ASSERT_EQ(served.Allocate(bytes, stream, by_address), recorded.Allocate(bytes, stream, by_address)) << where;
    } else if (dice < 98) {
      const bool is_newest = rng.Below(100) >= out_of_order;
      const std::size_t victim = is_newest ? served.live() - 1 : rng.Below(served.live());
      const bool frees_twice = rng.Below(4) == 0;
      served.Free(victim, frees_twice);
      recorded.Free(victim, frees_twice);
    } else if (dice == 98) {
      const std::size_t used = rng.Below(served.live());
      for (Subject* subject : {&served, &recorded}) subject->Use(used, Stream{9});
      if (rng.Below(2) == 0) {
        for (Subject* subject : {&served, &recorded}) subject->FinishWork();
      }
    } else if (rng.Below(4) == 0) {
      for (Subject* subject : {&served, &recorded}) subject->EmptyCache();
    }
    if (rng.Below(looks) == 0) {
      ASSERT_NO_FATAL_FAILURE(ExpectSame(served, recorded, where));
    }
  }
  for (Subject* subject : {&served, &recorded}) subject->FinishWork();
  ASSERT_NO_FATAL_FAILURE(ExpectSame(served, recorded, "at the end of seed " + std::to_string(seed)));
}

TEST(FastPathRecordedTest, ServedAndRecordedAreTheSame) {
  const std::vector<Setting> settings = {
      {""},
      {"", policy::FreeOrder::kPerSegmentCounter},
      {"", policy::FreeOrder::kPerBlockCounter},
      {"expandable_segments:True"},
      {"max_split_size_mb:20", policy::FreeOrder::kPerSegmentCounter},
      {"roundup_power2_divisions:4"},
  };
  for (const Setting& setting : settings) {
    for (std::uint64_t seed = 0; seed < 60; ++seed) ASSERT_NO_FATAL_FAILURE(FastPathRunProgram(setting, seed));
  }
}

// Several threads that take turns: streams move from thread cache to thread cache, and the peaks over all thread caches
// stay exact.
TEST(FastPathRecordedTest, ServedByThreadsInTurnAndRecordedAreTheSame) {
  const std::vector<Setting> settings = {{""}, {"expandable_segments:True", policy::FreeOrder::kPerSegmentCounter}};
  for (const Setting& setting : settings) {
    for (std::uint64_t seed = 100; seed < 112; ++seed) ASSERT_NO_FATAL_FAILURE(FastPathRunProgram(setting, seed, 3));
  }
}

// 100 blocks deep, up and down in waves.
TEST(FastPathRecordedTest, Waves) {
  Subject served({}, false);
  Subject recorded({}, true);
  for (int wave = 0; wave < 20; ++wave) {
    for (std::uint64_t i = 0; i < 100; ++i) {
      const std::uint64_t bytes = 512 * (1 + i * 37 % 23);
      ASSERT_EQ(served.Allocate(bytes, Stream{0}, true), recorded.Allocate(bytes, Stream{0}, true));
    }
    for (int i = wave; i < 100; ++i) {
      served.Free(served.live() - 1, false);
      recorded.Free(recorded.live() - 1, false);
    }
  }
  ExpectSame(served, recorded, "at the end");
}

TEST(PointerMapTest, LikeALinearSearch) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Rng rng(seed);
    PointerMap map;
    std::vector<policy::Block> blocks(600);
    std::vector<bool> present(blocks.size());
    // Few distinct high bits in some rounds, any byte in others.
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      blocks[i].address = seed % 2 == 0 ? 512 * (i + 1) : rng.Next() | 1;
    }
    std::size_t count = 0;
    for (int step = 0; step < 20'000; ++step) {
      const std::size_t i = rng.Below(blocks.size());
      const bool fills = rng.Below(100) < (step / 4000 % 2 == 0 ? 70u : 30u);
      if (fills) {
        count += present[i] ? 0 : 1;
        if (!present[i]) map.Insert(&blocks[i]);
        present[i] = true;
      } else {
        ASSERT_EQ(map.Take(blocks[i].address), present[i] ? &blocks[i] : nullptr);
        count -= present[i] ? 1 : 0;
        present[i] = false;
      }
      ASSERT_EQ(map.size(), count);
      const std::size_t other = rng.Below(blocks.size());
      map.Prefetch(blocks[other].address);
      ASSERT_EQ(map.Find(blocks[other].address).block, present[other] ? &blocks[other] : nullptr);
    }
  }
}

}  // namespace
}  // namespace ashlar::core
