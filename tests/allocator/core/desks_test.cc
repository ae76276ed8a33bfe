// Desks and the section that stops them, by themselves.
#include "allocator/core/desks.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <latch>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "allocator/core/desks.h"
#include "gtest/gtest.h"

namespace ashlar::core {
namespace {

class DesksTest : public testing::Test {
 protected:
  Ledger ledger_{policy::Options{}, [](policy::Lane&, const policy::AddressRange&) {}};
  Desks desks_{ledger_};
};

TEST_F(DesksTest, EveryThreadHasItsOwn) {
  constexpr int kThreads = 6;
  std::vector<Desk*> seen(kThreads);
  std::latch all_there(kThreads);
  std::vector<std::thread> threads;
  for (Desk*& desk : seen) {
    threads.emplace_back([&] {
      desk = desks_.OfThread().desk;
      EXPECT_EQ(desks_.OfThread().desk, desk) << "the same again";
      all_there.arrive_and_wait();
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::set<Desk*> distinct(seen.begin(), seen.end());
  EXPECT_EQ(distinct.size(), seen.size());
  EXPECT_FALSE(distinct.contains(&desks_.Common()));
}

// Asks for its thread's desk when the thread's own objects are destroyed.
struct AsksAtEnd {
  ~AsksAtEnd() {
    if (desks != nullptr) *out = desks->OfThread().desk;
  }
  Desks* desks = nullptr;
  Desk** out = nullptr;
};
thread_local AsksAtEnd asks_at_end;

// Its lock is biased to one thread: nobody else has it before the thread's last object is gone.
TEST_F(DesksTest, AThreadHasItsDeskToItsEndAndThenTheNextOneHasIt) {
  Desk* before = nullptr;
  Desk* at_end = nullptr;
  std::thread([&] {
    asks_at_end.desks = &desks_;  // made before the thread has a seat, so that it would be destroyed later
    asks_at_end.out = &at_end;
    before = desks_.OfThread().desk;
  }).join();
  EXPECT_EQ(at_end, before);
  Desk* of_next = nullptr;
  std::thread([&] { of_next = desks_.OfThread().desk; }).join();
  EXPECT_EQ(of_next, before);
}

TEST_F(DesksTest, AllocatorsDoNotShareDesks) {
  Desks others(ledger_);
  EXPECT_NE(others.OfThread().desk, desks_.OfThread().desk);
  EXPECT_EQ(desks_.OfThread().desk, desks_.OfThread().desk);
}

// No atomics in what is counted: a thread that is inside while another has its desk would lose counts, and is a race to
// ThreadSanitizer.
TEST_F(DesksTest, OneThreadIsInASectionAndNoDeskIsTaken) {
  constexpr std::size_t kThreads = 4;
  constexpr std::uint64_t kTimes = 500;
  std::array<std::uint64_t, kThreads> counts{};
  std::vector<std::thread> threads;
  for (std::uint64_t& count : counts) {
    threads.emplace_back([&] {
      for (std::uint64_t n = 0; n < kTimes; ++n) {
        {
          const HeldLock held(desks_.OfThread().desk->lock, true);
          ++count;
        }
        const ExclusiveSection section(desks_);
        for (std::uint64_t& any : counts) ++any;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const ExclusiveSection section(desks_);
  for (const std::uint64_t count : counts) EXPECT_EQ(count, kTimes + kThreads * kTimes);
  EXPECT_EQ(desks_.section_count(), kThreads * kTimes + 1);
}

TEST_F(DesksTest, ASerialSectionTakesNoDesk) {
  std::uint64_t locks = 0;
  {
    const ExclusiveSection section(desks_);
    section.SetSerial(true);
    locks = desks_.LockCount();
  }
  EXPECT_TRUE(desks_.IsSerial());
  for (int i = 0; i < 10; ++i) const ExclusiveSection section(desks_);
  const ExclusiveSection section(desks_);
  section.StopDesks();
  EXPECT_EQ(desks_.LockCount(), locks + 1) << "of StopDesks alone";
  section.SetSerial(false);
}

// What a desk served is in the statistics once a section begins.
TEST_F(DesksTest, ASectionFoldsWhatDesksCounted) {
  Desk& desk = *desks_.OfThread().desk;
  {
    const std::lock_guard<CountedLock> guard(desk.lock);
    EXPECT_FALSE(desk.CountAllocation(false, 512, 512, {})) << "no room below a peak of nothing";
    desk.left = desk.SizeClassOf(false).left = desk.SizeClassOf(false).dealt = {9, 9000, 9000, 0, 0};
    EXPECT_TRUE(desk.CountAllocation(false, 1024, 1000, {}));
    EXPECT_TRUE(desk.CountAllocation(false, 512, 400, {}));
    EXPECT_TRUE(desk.CountFree(false, 512, 400, {}));
  }
  const ExclusiveSection section(desks_);
  EXPECT_EQ(ledger_.stats().allocation.all().current, 1);
  EXPECT_EQ(ledger_.stats().allocation.all().allocated, 2);
  EXPECT_EQ(ledger_.stats().allocated_bytes.all().current, 1024);
  EXPECT_EQ(ledger_.stats().requested_bytes.all().current, 1000);
}

using DesksDeathTest = DesksTest;

TEST_F(DesksDeathTest, ASectionWithinASectionEndsTheProgram) {
  EXPECT_DEATH(
      {
        const ExclusiveSection section(desks_);
        const ExclusiveSection again(desks_);
      },
      "check failed: desks_.inside_.load");
}

TEST_F(DesksDeathTest, AfterTheEndEveryCallEndsTheProgram) {
  EXPECT_DEATH(
      {
        desks_.Close();
        const ExclusiveSection section(desks_);
      },
      "called after its destructor");
}

}  // namespace
}  // namespace ashlar::core
