#include "allocator/base/biased_lock.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <iterator>
#include <mutex>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

#if defined(__linux__) && defined(__x86_64__)
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#endif

namespace ashlar {
namespace {

// Two numbers that differ only while somebody is inside. No atomics: a second thread inside is a difference or a lost
// count, and a race to ThreadSanitizer.
struct Guarded {
  void Change() {
    if (a != b) ++torn;
    ++a;
    ++b;
  }
  std::uint64_t a = 0;
  std::uint64_t b = 0;
  std::uint64_t torn = 0;
};

void ChangeAsOwner(BiasedLock& lock, Guarded& guarded) {
  const bool is_biased = lock.LockAsOwner();
  guarded.Change();
  lock.UnlockAsOwner(is_biased);
}
void ChangeAsOther(BiasedLock& lock, Guarded& guarded) {
  const std::lock_guard<BiasedLock> guard(lock);
  guarded.Change();
}

bool IsSharedNow(BiasedLock& lock) {
  const bool is_biased = lock.LockAsOwner();
  lock.UnlockAsOwner(is_biased);
  return !is_biased;
}

// The owner is biased again after `turns` of its own.
std::uint32_t TurnsUntilBiased(BiasedLock& lock) {
  std::uint32_t turns = 0;
  while (IsSharedNow(lock) && turns <= 2 * BiasedLock::kMostTurns) ++turns;
  return turns;
}

TEST(BiasedLockTest, OneThreadIsInsideAtATime) {
  constexpr std::uint64_t kTimes = 200'000;
  BiasedLock lock(true);
  Guarded guarded;
  std::atomic<int> working = 3;
  std::uint64_t changes = 0;
  std::vector<std::thread> others;
  for (int i = 0; i < 3; ++i) {
    // Pauses of many lengths, so that the owner has the bias again before some of them.
    others.emplace_back([&lock, &guarded, &working, i] {
      for (int n = 0; n < 300; ++n) {
        ChangeAsOther(lock, guarded);
        std::atomic<int> waited = 0;
        while (waited++ < (n % 7) * 1000 * i) continue;
      }
      --working;
    });
  }
  for (; changes < kTimes || working > 0; ++changes) ChangeAsOwner(lock, guarded);
  for (std::thread& other : others) other.join();
  EXPECT_EQ(guarded.a, changes + 900);
  EXPECT_EQ(guarded.b, changes + 900);
  EXPECT_EQ(guarded.torn, 0u);
}

// Each revocation meets an owner that is inside as often as it can be.
TEST(BiasedLockTest, TheBiasIsTakenWhileTheOwnerWorks) {
  if (!BiasedLock::CanBias()) GTEST_SKIP() << "no membarrier here";
  std::uint64_t met = 0;
  for (int round = 0; round < 150; ++round) {
    BiasedLock lock(true);
    Guarded guarded;
    std::atomic<bool> began = false;
    std::atomic<bool> ended = false;
    std::uint64_t changes = 0;
    std::thread owner([&] {
      for (; !ended.load(std::memory_order_relaxed); ++changes) {
        ChangeAsOwner(lock, guarded);
        if (changes == 100) began = true;
      }
    });
    while (!began) std::this_thread::yield();
    {
      const std::lock_guard<BiasedLock> guard(lock);
      EXPECT_TRUE(lock.is_shared());
      met = guarded.a;
      for (int i = 0; i < 50; ++i) guarded.Change();
      EXPECT_EQ(guarded.a, met + 50);
    }
    ended = true;
    owner.join();
    EXPECT_EQ(guarded.a, changes + 50);
    EXPECT_EQ(guarded.torn, 0u);
  }
}

TEST(BiasedLockTest, WhoIsDisturbedOftenIsBiasedSeldom) {
  if (!BiasedLock::CanBias()) GTEST_SKIP() << "no membarrier here";
  BiasedLock lock(true);
  EXPECT_FALSE(IsSharedNow(lock));
  std::uint32_t last = 0;
  for (int i = 0; i < 12; ++i) {
    std::thread([&lock] { const std::lock_guard<BiasedLock> guard(lock); }).join();
    const std::uint32_t turns = TurnsUntilBiased(lock);
    EXPECT_GE(turns, last);
    EXPECT_GE(turns, BiasedLock::kFirstTurns);
    EXPECT_LE(turns, BiasedLock::kMostTurns);
    last = turns;
  }
  EXPECT_GT(last, BiasedLock::kMostTurns / 2);
}

TEST(BiasedLockTest, TurnsOfOthersAreNoneInARow) {
  BiasedLock lock(true);
  std::thread([&lock] { const std::lock_guard<BiasedLock> guard(lock); }).join();
  for (std::uint32_t i = 0; i < 8 * BiasedLock::kFirstTurns; ++i) {
    EXPECT_TRUE(IsSharedNow(lock));
    if (i % 32 == 31) const std::lock_guard<BiasedLock> guard(lock);
  }
}

TEST(BiasedLockTest, WithoutAnOwnerAnyThreadMayCallAsOne) {
  BiasedLock lock(false);
  Guarded guarded;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 20'000; ++n) ChangeAsOwner(lock, guarded);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(IsSharedNow(lock));
  EXPECT_EQ(guarded.a, 80'000u);
  EXPECT_EQ(guarded.torn, 0u);
}

TEST(BiasedLockTest, AnOwnerThatEndedLeavesItToTheNext) {
  BiasedLock lock(true);
  Guarded guarded;
  for (int i = 0; i < 50; ++i) {
    std::thread([&] {
      for (int n = 0; n < 100; ++n) ChangeAsOwner(lock, guarded);
    }).join();
    if (i % 5 == 0) ChangeAsOther(lock, guarded);
  }
  EXPECT_EQ(guarded.a, 5'010u);
}

#if defined(__linux__) && defined(__x86_64__)

// Runs in a child, which has threads of its own; its exit code is what `act` returns.
template <typename Act>
int ExitCodeOfChild(Act act) {
  const pid_t child = fork();
  if (child == 0) _exit(act());
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool RefuseMembarrier() {
  sock_filter filter[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                          BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog program = {static_cast<unsigned short>(std::size(filter)), filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

constexpr int kNoFilter = 77;

// The owner works on while another takes the lock: 0 if both were right.
int WorkOfTwo(BiasedLock& lock) {
  Guarded guarded;
  std::thread other([&] {
    for (int n = 0; n < 200; ++n) {
      ChangeAsOther(lock, guarded);
      std::this_thread::yield();
    }
  });
  for (int n = 0; n < 50'000; ++n) ChangeAsOwner(lock, guarded);
  other.join();
  return guarded.a == 50'200 && guarded.b == guarded.a && guarded.torn == 0 ? 0 : 1;
}

TEST(BiasedLockTest, AForkedChildGoesOn) {
  BiasedLock lock(true);
  Guarded guarded;
  ChangeAsOwner(lock, guarded);
  const int code = ExitCodeOfChild([&lock] {
    if (BiasedLock::CanBias() && IsSharedNow(lock)) return 2;
    if (const int failed = WorkOfTwo(lock); failed != 0) return failed;
    return TurnsUntilBiased(lock) > BiasedLock::kMostTurns && BiasedLock::CanBias() ? 3 : 0;
  });
  EXPECT_EQ(code, 0);
  ChangeAsOwner(lock, guarded);
  EXPECT_EQ(WorkOfTwo(lock), 0);
}

TEST(BiasedLockTest, ASystemThatTakesMembarrierAwayLeavesASpinLock) {
  BiasedLock lock(true);
  const int code = ExitCodeOfChild([&lock] {
    if (!RefuseMembarrier()) return kNoFilter;
    if (const int failed = WorkOfTwo(lock); failed != 0) return failed;
    if (BiasedLock::CanBias()) return 2;
    return TurnsUntilBiased(lock) > BiasedLock::kMostTurns && BiasedLock(true).is_shared() ? 0 : 3;
  });
  if (code == kNoFilter) GTEST_SKIP() << "no filter of system calls can be set here";
  EXPECT_EQ(code, 0);
}

#endif

}  // namespace
}  // namespace ashlar
