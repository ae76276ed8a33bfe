// ThreadCaches and the section that stops them, by themselves.
#include "allocator/core/thread_caches.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <latch>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "allocator/core/thread_caches.h"
#include "gtest/gtest.h"

namespace ashlar::core {
namespace {

class ThreadCachesTest : public testing::Test {
 protected:
  Ledger ledger_{policy::Options{}, [](policy::Lane&, const policy::AddressRange&) {}};
  ThreadCaches thread_caches_{ledger_};
};

TEST_F(ThreadCachesTest, EveryThreadHasItsOwn) {
  constexpr int kThreads = 6;
  std::vector<ThreadCache*> seen(kThreads);
  std::latch all_there(kThreads);
  std::vector<std::thread> threads;
  for (ThreadCache*& cache : seen) {
    threads.emplace_back([&] {
      cache = thread_caches_.OfThread().cache;
      EXPECT_EQ(thread_caches_.OfThread().cache, cache) << "the same again";
      all_there.arrive_and_wait();
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::set<ThreadCache*> distinct(seen.begin(), seen.end());
  EXPECT_EQ(distinct.size(), seen.size());
  EXPECT_FALSE(distinct.contains(&thread_caches_.Common()));
}

// Asks for its thread's thread cache when the thread's own objects are destroyed.
struct AsksAtEnd {
  ~AsksAtEnd() {
    if (caches != nullptr) *out = caches->OfThread().cache;
  }
  ThreadCaches* caches = nullptr;
  ThreadCache** out = nullptr;
};
thread_local AsksAtEnd asks_at_end;

// Its lock is biased to one thread: nobody else has it before the thread's last object is gone.
TEST_F(ThreadCachesTest, AThreadHasItsThreadCacheToItsEndAndThenTheNextOneHasIt) {
  ThreadCache* before = nullptr;
  ThreadCache* at_end = nullptr;
  std::thread([&] {
    asks_at_end.caches = &thread_caches_;  // made before the thread has a slot, so that it would be destroyed later
    asks_at_end.out = &at_end;
    before = thread_caches_.OfThread().cache;
  }).join();
  EXPECT_EQ(at_end, before);
  ThreadCache* of_next = nullptr;
  std::thread([&] { of_next = thread_caches_.OfThread().cache; }).join();
  EXPECT_EQ(of_next, before);
}

TEST_F(ThreadCachesTest, AllocatorsDoNotShareThreadCaches) {
  ThreadCaches others(ledger_);
  EXPECT_NE(others.OfThread().cache, thread_caches_.OfThread().cache);
  EXPECT_EQ(thread_caches_.OfThread().cache, thread_caches_.OfThread().cache);
}

// No atomics in what is counted: a thread that is inside while another has its thread cache would lose counts, and is a
// race to ThreadSanitizer.
TEST_F(ThreadCachesTest, OneThreadIsInASectionAndNoThreadCacheIsTaken) {
  constexpr std::size_t kThreads = 4;
  constexpr std::uint64_t kTimes = 500;
  std::array<std::uint64_t, kThreads> counts{};
  std::vector<std::thread> threads;
  for (std::uint64_t& count : counts) {
    threads.emplace_back([&] {
      for (std::uint64_t n = 0; n < kTimes; ++n) {
        {
          const HeldLock held(thread_caches_.OfThread().cache->lock, true);
          ++count;
        }
        const ExclusiveSection section(thread_caches_);
        for (std::uint64_t& any : counts) ++any;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const ExclusiveSection section(thread_caches_);
  for (const std::uint64_t count : counts) EXPECT_EQ(count, kTimes + kThreads * kTimes);
  EXPECT_EQ(thread_caches_.section_count(), kThreads * kTimes + 1);
}

TEST_F(ThreadCachesTest, ASerialSectionTakesNoThreadCache) {
  std::uint64_t locks = 0;
  {
    const ExclusiveSection section(thread_caches_);
    section.SetSerial(true);
    locks = thread_caches_.LockCount();
  }
  EXPECT_TRUE(thread_caches_.IsSerial());
  for (int i = 0; i < 10; ++i) const ExclusiveSection section(thread_caches_);
  const ExclusiveSection section(thread_caches_);
  section.StopThreadCaches();
  EXPECT_EQ(thread_caches_.LockCount(), locks + 1) << "of StopThreadCaches alone";
  section.SetSerial(false);
}

// What a thread cache served is in the statistics once a section begins.
TEST_F(ThreadCachesTest, ASectionFoldsWhatThreadCachesCounted) {
  ThreadCache& cache = *thread_caches_.OfThread().cache;
  {
    const std::lock_guard<CountedLock> guard(cache.lock);
    EXPECT_FALSE(cache.CountAllocation(false, 512, 512, {})) << "no room below a peak of nothing";
    cache.left = cache.SizeClassOf(false).left = cache.SizeClassOf(false).dealt = {9, 9000, 9000, 0, 0};
    EXPECT_TRUE(cache.CountAllocation(false, 1024, 1000, {}));
    EXPECT_TRUE(cache.CountAllocation(false, 512, 400, {}));
    EXPECT_TRUE(cache.CountFree(false, 512, 400, {}));
  }
  const ExclusiveSection section(thread_caches_);
  EXPECT_EQ(ledger_.stats().allocation.all().current, 1);
  EXPECT_EQ(ledger_.stats().allocation.all().allocated, 2);
  EXPECT_EQ(ledger_.stats().allocated_bytes.all().current, 1024);
  EXPECT_EQ(ledger_.stats().requested_bytes.all().current, 1000);
}

using ThreadCachesDeathTest = ThreadCachesTest;

TEST_F(ThreadCachesDeathTest, ASectionWithinASectionEndsTheProgram) {
  EXPECT_DEATH(
      {
        const ExclusiveSection section(thread_caches_);
        const ExclusiveSection again(thread_caches_);
      },
      "check failed: thread_caches_.inside_.load");
}

TEST_F(ThreadCachesDeathTest, AfterTheEndEveryCallEndsTheProgram) {
  EXPECT_DEATH(
      {
        thread_caches_.Close();
        const ExclusiveSection section(thread_caches_);
      },
      "called after its destructor");
}

}  // namespace
}  // namespace ashlar::core
