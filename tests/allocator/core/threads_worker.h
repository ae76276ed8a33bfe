// One thread of a random program on a shared allocator, and what it saw, stamped by one clock.
#ifndef ASHLAR_TESTS_ALLOCATOR_CORE_THREADS_WORKER_H_
#define ASHLAR_TESTS_ALLOCATOR_CORE_THREADS_WORKER_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "allocator/base/rng.h"
#include "allocator/core/caching_allocator.h"
#include "gtest/gtest.h"
#include "tests/allocator/core/locked_device.h"
#include "tests/mailbox.h"

namespace ashlar::core {

// One block's life: it was surely live in [from, to), and surely not before `asked` nor after `gone`.
struct Life {
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;
  std::uint64_t requested_bytes = 0;
  std::uint64_t asked = 0;
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  std::uint64_t gone = 0;
};

struct Held {
  Block* block = nullptr;  // nullptr: by address
  Life life;
};

// Orders nothing but the stamps, so that it hides no race.
class Clock {
 public:
  std::uint64_t Next() { return now_.fetch_add(1, std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> now_{1};
};

using Mailbox = tests::Mailbox<Held>;

class Worker {
 public:
  Worker(int index, std::uint64_t seed, CachingAllocator& allocator, LockedDevice& device, Clock& clock, Mailbox& mail)
      : index_(index), rng_(seed), allocator_(allocator), device_(device), clock_(clock), mail_(mail) {}

  // No pools of its own and no graph captures from now on.
  void KeepToSharedPools() { uses_own_pools_ = false; }
  // From now on requests go to streams 1 to `count`, at most 100 blocks are held, what is passed on is taken as often,
  // lives are summed and not kept, and what looks at the whole state (Validate and the like) comes `times` as seldom.
  void RunLong(std::uint64_t stream_count, std::uint64_t times) {
    stream_count_ = stream_count;
    seldom_ = times;
    KeepToSharedPools();
  }
  void RunSteps(int steps) {
    for (int i = 0; i < steps; ++i) Step();
  }
  void Run(int steps) {
    RunSteps(steps);
    while (!held_.empty()) FreeOne();
  }
  void FreeMail() {
    while (const std::optional<Held> held = mail_.Take()) Free(*held);
  }

  const std::vector<Life>& lives() const { return lives_; }
  std::uint64_t failures() const { return failures_; }
  // Of all lives that are over, kept or not.
  std::uint64_t life_count() const { return life_count_; }
  std::uint64_t requested_bytes() const { return requested_bytes_; }

 private:
  static constexpr std::size_t kMostHeldLong = 100;
  static constexpr std::uint64_t kPoolStreams = 100;

  bool IsLong() const { return stream_count_ != 0; }

  void Step() {
    std::uint64_t dice = rng_.Below(1000);
    if (dice >= 985 && rng_.Below(seldom_) != 0) dice = rng_.Below(960);
    if (dice < 480) {
      IsLong() && held_.size() >= kMostHeldLong ? FreeOne() : Allocate();
    } else if (dice < 900) {
      FreeOne();
    } else if (dice < 940) {
      Record();
    } else if (dice < 980) {
      PassOn();
    } else if (dice < 985) {
      device_.CompleteAllWork();
    } else if (dice < 988) {
      allocator_.EmptyCache();
    } else if (dice < 993) {
      const Stats stats = allocator_.stats();
      EXPECT_GE(stats.allocated_bytes.all().current, 0);
      EXPECT_LE(stats.allocated_bytes.all().current, stats.allocated_bytes.all().peak);
      EXPECT_LE(stats.allocated_bytes.all().current, stats.active_bytes.all().current);
      EXPECT_LE(stats.active_bytes.all().current, stats.reserved_bytes.all().current);
    } else if (dice < 996) {
      std::uint64_t end = 0;
      for (const trace::SnapshotSegment& segment : allocator_.Segments()) {
        EXPECT_GE(segment.address, end);
        end = segment.address + segment.size_bytes;
      }
    } else if (dice < 998) {
      if (uses_own_pools_) UsePool();
    } else {
      EXPECT_EQ(allocator_.Validate(), absl::OkStatus());
    }
  }

  // This thread's requests go to a pool of its own, every other time as a graph capture sends them.
  void UsePool() {
    const PoolId pool = allocator_.CreatePool();
    const StreamFilter mine = [self = std::this_thread::get_id()](Stream) {
      return std::this_thread::get_id() == self;
    };
    const RouteKind kind = rng_.Below(2) == 0 ? RouteKind::kPlain : RouteKind::kCapture;
    EXPECT_EQ(allocator_.BeginPool(pool, mine, kind), absl::OkStatus());
    for (int i = 0; i < 8; ++i) {
      Allocate();
      if (rng_.Below(2) == 0) FreeOne();
      if (rng_.Below(4) == 0) Record();
    }
    EXPECT_EQ(allocator_.EndPool(pool), absl::OkStatus());
    for (int user = 0; user < 2; ++user) allocator_.ReleasePool(pool);
    allocator_.EmptyPool(pool).IgnoreError();  // not while another thread captures a graph
  }

  // A private pool keeps what its streams had, and nobody else gets it: over 100,000 streams that would soon be all.
  Stream RandomStream(PoolId pool = {}) {
    if (IsLong())
      return Stream{1 + rng_.Below(pool.IsDefault() ? stream_count_ : std::min(stream_count_, kPoolStreams))};
    const std::uint64_t own = static_cast<std::uint64_t>(index_ + 1) * 0x1000;
    return Stream{rng_.Below(2) == 0 ? own : rng_.Below(3)};
  }

  void Allocate() {
    const std::uint64_t bytes = rng_.Below(3) == 0 ? rng_.Between(1, 6 * kMiB) : rng_.Between(1, 64 * kKiB);
    const PoolId pool = rng_.Below(8) == 0 ? PoolId{7, rng_.Between(1, 3)} : PoolId{};
    Held held;
    held.life.requested_bytes = bytes;
    held.life.asked = clock_.Next();
    if (rng_.Below(2) == 0) {
      const absl::StatusOr<std::uint64_t> address = allocator_.AllocateAddress(bytes, RandomStream(pool), pool);
      if (!address.ok()) return Failed(address.status());
      held.life.address = *address;
      held.life.size_bytes = bytes;
    } else {
      const absl::StatusOr<Block*> block = allocator_.Allocate(bytes, RandomStream(pool), pool);
      if (!block.ok()) return Failed(block.status());
      held.block = *block;
      held.life.address = (*block)->address;
      held.life.size_bytes = bytes;
    }
    held.life.from = clock_.Next();
    held_.push_back(held);
  }

  void Failed(const absl::Status& status) {
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
    ++failures_;
    for (int i = 0; i < 4; ++i) FreeOne();
  }

  void FreeOne() {
    if (held_.empty()) {
      if (const std::optional<Held> held = mail_.Take()) Free(*held);
      return;
    }
    const std::size_t at = rng_.Below(held_.size());
    std::swap(held_[at], held_.back());
    const Held held = held_.back();
    held_.pop_back();
    Free(held);
  }

  void Free(Held held) {
    const bool tries_inside = rng_.Below(16) == 0;  // where nothing begins
    EXPECT_FALSE(tries_inside && allocator_.FreeAddress(held.life.address + 1));
    held.life.to = clock_.Next();
    if (held.block != nullptr) {
      allocator_.Free(held.block);
    } else {
      EXPECT_TRUE(allocator_.FreeAddress(held.life.address));
    }
    held.life.gone = clock_.Next();
    ++life_count_;
    requested_bytes_ += held.life.requested_bytes;
    if (!IsLong()) lives_.push_back(held.life);
  }

  void Record() {
    for (const Held& held : held_) {
      if (held.block != nullptr) return allocator_.RecordStream(held.block, RandomStream());
    }
  }

  void PassOn() {
    if (held_.empty()) return;
    if (const std::optional<Held> held = IsLong() ? mail_.Take() : std::nullopt) Free(*held);
    mail_.Put(held_.back());
    held_.pop_back();
  }

  int index_;
  Rng rng_;
  CachingAllocator& allocator_;
  LockedDevice& device_;
  Clock& clock_;
  Mailbox& mail_;
  std::vector<Held> held_;
  std::vector<Life> lives_;
  std::uint64_t failures_ = 0;
  std::uint64_t life_count_ = 0;
  std::uint64_t requested_bytes_ = 0;
  std::uint64_t stream_count_ = 0;  // 0: its own and three that all share
  std::uint64_t seldom_ = 1;
  bool uses_own_pools_ = true;
};

}  // namespace ashlar::core

#endif  // ASHLAR_TESTS_ALLOCATOR_CORE_THREADS_WORKER_H_
