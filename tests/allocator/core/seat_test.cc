#include "allocator/core/seat.h"

#include <pthread.h>

#include <cstdint>
#include <latch>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "allocator/core/desks.h"
#include "allocator/core/seat.h"
#include "gtest/gtest.h"

namespace ashlar::core {
namespace {

// The seats of `count` threads that live at once.
std::set<const Seat*> SeatsOf(int count) {
  std::vector<const Seat*> seats(static_cast<std::size_t>(count));
  std::latch all_seated(count);
  std::vector<std::thread> threads;
  for (const Seat*& seat : seats) {
    threads.emplace_back([&seat, &all_seated] {
      seat = SeatOfThread();
      all_seated.arrive_and_wait();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return {seats.begin(), seats.end()};
}

TEST(SeatTest, ThreadsThatLiveAtOnceHaveDifferentOnes) {
  const Seat* const mine = SeatOfThread();
  EXPECT_EQ(SeatsOf(8).size(), 8u);
  EXPECT_FALSE(SeatsOf(8).contains(mine));
}

TEST(SeatTest, AThreadKeepsItsOwn) { EXPECT_EQ(SeatOfThread(), SeatOfThread()); }

TEST(SeatTest, ThreadsThatEndLeaveThemToLaterOnes) {
  const std::set<const Seat*> before = SeatsOf(8);
  EXPECT_EQ(SeatsOf(8), before);
}

// What runs after the seat was returned: a destructor of a key that is younger.
TEST(SeatTest, AThreadThatAsksAfterItsEndReturnsThatSeatToo) {
  SeatOfThread();  // the seats' own key is the older one
  static const Seat* late = nullptr;
  pthread_key_t key{};
  ASSERT_EQ(pthread_key_create(&key, [](void*) { late = SeatOfThread(); }), 0);
  const std::set<const Seat*> before = SeatsOf(2);
  std::thread([&] {
    SeatOfThread();
    pthread_setspecific(key, &key);
  }).join();
  pthread_key_delete(key);
  EXPECT_TRUE(before.contains(late));
  EXPECT_EQ(SeatsOf(2), before);
}

TEST(SeatTest, TheNextOneFindsNothingOfTheLast) {
  std::thread([] {
    BeginScope("left open");
    EXPECT_FALSE(SeatOfThread()->scopes.empty());
  }).join();
  std::thread([] {
    EXPECT_TRUE(SeatOfThread()->scopes.empty());
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
