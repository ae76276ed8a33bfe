#include "allocator/core/thread_slot.h"

#include <pthread.h>

#include <cstdint>
#include <latch>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "allocator/core/thread_caches.h"
#include "allocator/core/thread_slot.h"
#include "gtest/gtest.h"

namespace ashlar::core {
namespace {

// The slots of `count` threads that live at once.
std::set<const ThreadSlot*> SlotsOf(int count) {
  std::vector<const ThreadSlot*> slots(static_cast<std::size_t>(count));
  std::latch all_have_slots(count);
  std::vector<std::thread> threads;
  for (const ThreadSlot*& slot : slots) {
    threads.emplace_back([&slot, &all_have_slots] {
      slot = SlotOfThread();
      all_have_slots.arrive_and_wait();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return {slots.begin(), slots.end()};
}

TEST(ThreadSlotTest, ThreadsThatLiveAtOnceHaveDifferentOnes) {
  const ThreadSlot* const mine = SlotOfThread();
  EXPECT_EQ(SlotsOf(8).size(), 8u);
  EXPECT_FALSE(SlotsOf(8).contains(mine));
}

TEST(ThreadSlotTest, AThreadKeepsItsOwn) { EXPECT_EQ(SlotOfThread(), SlotOfThread()); }

TEST(ThreadSlotTest, ThreadsThatEndLeaveThemToLaterOnes) {
  const std::set<const ThreadSlot*> before = SlotsOf(8);
  EXPECT_EQ(SlotsOf(8), before);
}

// What runs after the slot was returned: a destructor of a key that is younger.
TEST(ThreadSlotTest, AThreadThatAsksAfterItsEndReturnsThatSlotToo) {
  SlotOfThread();  // the slots' own key is the older one
  static const ThreadSlot* late = nullptr;
  pthread_key_t key{};
  ASSERT_EQ(pthread_key_create(&key, [](void*) { late = SlotOfThread(); }), 0);
  const std::set<const ThreadSlot*> before = SlotsOf(2);
  std::thread([&] {
    SlotOfThread();
    pthread_setspecific(key, &key);
  }).join();
  pthread_key_delete(key);
  EXPECT_TRUE(before.contains(late));
  EXPECT_EQ(SlotsOf(2), before);
}

TEST(ThreadSlotTest, TheNextOneFindsNothingOfTheLast) {
  std::thread([] {
    BeginScope("left open");
    EXPECT_FALSE(SlotOfThread()->scopes.empty());
  }).join();
  std::thread([] {
    EXPECT_TRUE(SlotOfThread()->scopes.empty());
    EXPECT_FALSE(table_of_thread->scope_stacks.is_open);
  }).join();
}

// Both counts are no atomics: a second thread inside is a lost count, and a race to ThreadSanitizer.
TEST(CountedLockTest, OneThreadIsInsideAtATime) {
  constexpr std::uint64_t kTimes = 40'000;
  CountedLock lock(false);
  std::uint64_t count = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (std::uint64_t n = 0; n < kTimes; ++n) {
        const HeldLock held(lock, n % 2 == 0);
        ++count;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::lock_guard<CountedLock> guard(lock);
  EXPECT_EQ(count, 4 * kTimes);
  EXPECT_EQ(lock.times_taken(), 4 * kTimes + 1);
}

}  // namespace
}  // namespace ashlar::core
