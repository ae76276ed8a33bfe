// A lock that costs its owner, one thread, no atomic read-modify-write: two plain stores and a load, while no other
// thread wants it. One that does takes the lock that is inside, says so, and makes the owner's processor show what the
// owner has stored (membarrier). From then on both take the lock that is inside, until the owner has taken it many
// times in a row without the other: each time that the bias is lost, that is twice as many, up to a limit.
//
//   BiasedLock lock(true);
//   const bool is_biased = lock.LockAsOwner();     // the owner
//   lock.UnlockAsOwner(is_biased);
//   const std::lock_guard<BiasedLock> guard(lock);   // any thread, the owner too
//
// Where the system has no membarrier, or refuses it, it is a spin lock. Not recursive. Thread rule: one thread at a
// time is the owner, and who is it next has seen the last one end; of a lock without one, any thread may call all.
#ifndef ASHLAR_ALLOCATOR_BASE_BIASED_LOCK_H_
#define ASHLAR_ALLOCATOR_BASE_BIASED_LOCK_H_

#include <atomic>
#include <cstdint>
#include <thread>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace ashlar {

// A lock for critical sections of some ten nanoseconds: one atomic exchange to take it, one store to let it go. A
// waiter looks again after a pause that doubles each time, so that who holds the lock works undisturbed by its looks;
// at the longest it gives its time slice away too. Meets BasicLockable, for std::lock_guard.
class SpinLock {
 public:
  void lock() {
    if (is_taken_.exchange(true, std::memory_order_acquire)) [[unlikely]]
      LockContended();
  }
  void unlock() { is_taken_.store(false, std::memory_order_release); }

  // Looks whether it is so as seldom as a waiter does.
  template <typename IsSo>
  static void WaitUntil(IsSo is_so) {
    int pauses = 1;
    do {
      for (int i = 0; i < pauses; ++i) Pause();
      if (pauses < kMostPauses) {
        pauses *= 2;
      } else {
        std::this_thread::yield();
      }
    } while (!is_so());
  }

 private:
  static constexpr int kMostPauses = 64;  // 1 to 2.5 us, by the processor

  [[gnu::noinline]] void LockContended() {
    WaitUntil([this] {
      return !is_taken_.load(std::memory_order_relaxed) && !is_taken_.exchange(true, std::memory_order_acquire);
    });
  }

  static void Pause() {
#if defined(__x86_64__)
    _mm_pause();
#endif
  }

  std::atomic<bool> is_taken_{false};
};

class BiasedLock {
 public:
  explicit BiasedLock(bool has_owner) : has_owner_(has_owner), is_shared_(!has_owner || !CanBias()) {}

  // Returns what UnlockAsOwner wants to know.
  bool LockAsOwner() {
    if (!is_shared_.load(std::memory_order_relaxed)) [[likely]] {
      is_owner_inside_.store(true, std::memory_order_relaxed);
      // The processor may load before others see the store. Who needs the order gives it the barrier.
      std::atomic_signal_fence(std::memory_order_seq_cst);
      if (!is_shared_.load(std::memory_order_acquire)) [[likely]]
        return true;
      is_owner_inside_.store(false, std::memory_order_release);  // who takes the bias waits for that
    }
    lock_.lock();
    if (++turns_of_owner_ >= wanted_turns_) [[unlikely]]
      Rebias();
    return false;
  }
  void UnlockAsOwner(bool is_biased) {
    if (is_biased) [[likely]] {
      is_owner_inside_.store(false, std::memory_order_release);
    } else {
      lock_.unlock();
    }
  }

  void lock() {
    lock_.lock();
    turns_of_owner_ = 0;
    if (!is_shared_.load(std::memory_order_relaxed)) [[unlikely]]
      TakeBias();
  }
  void unlock() { lock_.unlock(); }

  // For who holds it: whether the owner's next turn costs an atomic operation.
  bool is_shared() const { return is_shared_.load(std::memory_order_relaxed); }
  // Whether this process may bias locks at all, as far as is known.
  static bool CanBias();

  static constexpr std::uint16_t kFirstTurns = 64;
  static constexpr std::uint16_t kMostTurns = 4096;

 private:
  [[gnu::noinline]] void Rebias();
  [[gnu::noinline]] void TakeBias();

  std::atomic<bool> is_owner_inside_{false};  // written by the owner alone
  const bool has_owner_;
  std::atomic<bool> is_shared_;  // changes under lock_
  SpinLock lock_;
  // Guarded by lock_: how often the owner took it in a row, and after how many it has the bias again.
  std::uint16_t turns_of_owner_ = 0;
  std::uint16_t wanted_turns_ = kFirstTurns;
};
static_assert(sizeof(BiasedLock) == 8);

}  // namespace ashlar

#endif  // ASHLAR_ALLOCATOR_BASE_BIASED_LOCK_H_
