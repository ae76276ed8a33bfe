// Threads that come in bursts long enough to be given the bias, and take it from each other.
#include "allocator/core/biased_lock.h"

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "allocator/base/rng.h"
#include "gtest/gtest.h"

namespace ashlar::core {
namespace {

TEST(BiasedLockTest, OneThreadIsInsideAtATime) {
  constexpr std::uint64_t kThreads = 4;
  constexpr std::uint64_t kTimes = 40'000;
  struct Guarded {
    BiasedLock lock;
    std::uint64_t count = 0;  // no atomics: a second thread inside is a lost count, and a race to ThreadSanitizer
    std::uint64_t again = 0;
    std::uint64_t torn = 0;
  };
  std::vector<Guarded> all(2);
  std::vector<std::thread> threads;
  for (std::uint64_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&all, i] {
      Rng rng(i);
      for (std::uint64_t left = kTimes; left > 0;) {
        Guarded& guarded = all[rng.Below(all.size())];
        for (std::uint64_t burst = rng.Between(1, 400); burst > 0 && left > 0; --burst, --left) {
          const BiasedLock::Guard guard(guarded.lock);
          if (++guarded.count != ++guarded.again) ++guarded.torn;
        }
        if (rng.Below(4) == 0) std::this_thread::yield();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::uint64_t count = 0;
  for (Guarded& guarded : all) {
    const BiasedLock::Guard guard(guarded.lock);
    EXPECT_EQ(guarded.torn, 0u);
    EXPECT_EQ(guarded.again, guarded.count);
    EXPECT_EQ(guarded.lock.times_taken(), guarded.count + 1);
    count += guarded.count;
  }
  EXPECT_EQ(count, kThreads * kTimes);
}

// One thread is given the bias and keeps it through a thousand uses; another gets in at once, and the first again.
TEST(BiasedLockTest, TheBiasMovesOn) {
  BiasedLock lock;
  const auto take = [&lock](int times) {
    BiasedLock::Way way{};
    for (int i = 0; i < times; ++i) {
      way = lock.Lock();
      lock.Unlock(way);
    }
    return way;
  };
  EXPECT_EQ(take(1), BiasedLock::Way::kShared);
  const BiasedLock::Way after_many = take(1000);
  BiasedLock::Way of_other{};
  std::thread([&] { of_other = take(1); }).join();
  EXPECT_EQ(of_other, BiasedLock::Way::kShared);
  EXPECT_EQ(take(1), BiasedLock::Way::kShared);
  EXPECT_EQ(take(1000), after_many);  // kBiased where the kernel allows it
}

}  // namespace
}  // namespace ashlar::core
