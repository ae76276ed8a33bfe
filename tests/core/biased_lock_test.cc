// Threads that come in bursts long enough to be given the bias, and take it from each other.
#include "allocator/core/biased_lock.h"

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <csignal>
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

// A signal stops the thread between any two instructions and holds it there, for at most some milliseconds, while
// another is given the bias and is inside.
std::atomic<int> stops{0};
std::atomic<int> goes{0};

void HoldHere(int) {
  const int stop = stops.fetch_add(1) + 1;
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(4);
  while (goes.load() < stop && std::chrono::steady_clock::now() < until) {
  }
}

TEST(BiasedLockTest, AThreadMayBeStoppedAnywhere) {
  struct sigaction hold {};
  hold.sa_handler = HoldHere;
  struct sigaction before {};
  ASSERT_EQ(sigaction(SIGUSR1, &hold, &before), 0);
  BiasedLock lock;
  std::atomic<bool> is_over{false};
  std::atomic<std::uint64_t> count{0};  // changes under the lock only
  std::thread stopped([&] {
    while (!is_over.load(std::memory_order_relaxed)) {
      const BiasedLock::Guard guard(lock);
      count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
  });
  for (int i = 0; i < 60; ++i) {
    std::this_thread::sleep_for(std::chrono::microseconds(300));  // so that the other is given the bias
    const int stop = stops.load() + 1;
    ASSERT_EQ(pthread_kill(stopped.native_handle(), SIGUSR1), 0);
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(4);
    while (stops.load() < stop && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    for (int burst = 0; burst < 5'000; ++burst) {
      const BiasedLock::Guard guard(lock);
    }
    const BiasedLock::Guard guard(lock);
    const std::uint64_t count_before = count.load();
    goes.store(stop);
    std::this_thread::sleep_for(std::chrono::microseconds(300));
    EXPECT_EQ(count.load(), count_before) << "another thread is inside, after stop " << i;
  }
  is_over = true;
  stopped.join();
  ASSERT_EQ(sigaction(SIGUSR1, &before, nullptr), 0);
}

// A thread that ends leaves what it was given to one that comes later, or to nobody.
TEST(BiasedLockTest, ThreadsComeAndGo) {
  BiasedLock lock;
  std::uint64_t count = 0;
  for (int i = 0; i < 20; ++i) {
    std::thread([&] {
      for (int n = 0; n < 5'000; ++n) {
        const BiasedLock::Guard guard(lock);
        ++count;
      }
    }).join();
    if (i % 3 != 0) continue;
    const BiasedLock::Guard guard(lock);
    ++count;
  }
  EXPECT_EQ(count, 20u * 5'000u + 7);
}

// One thread is given the bias and keeps it through a thousand uses; another gets in at once, and the first again.
TEST(BiasedLockTest, TheBiasMovesOn) {
  BiasedLock lock;
  const auto take = [&lock](int times) {
    BiasedLock::Way way = nullptr;
    for (int i = 0; i < times; ++i) {
      way = lock.Lock();
      lock.Unlock(way);
    }
    return way;
  };
  EXPECT_EQ(take(1), nullptr);
  const BiasedLock::Way after_many = take(1000);
  BiasedLock::Way of_other = nullptr;
  std::thread([&] { of_other = take(1); }).join();
  EXPECT_EQ(of_other, nullptr);
  EXPECT_EQ(take(1), nullptr);
  EXPECT_EQ(take(1000), after_many);  // the bias, where the kernel allows it
}

}  // namespace
}  // namespace ashlar::core
