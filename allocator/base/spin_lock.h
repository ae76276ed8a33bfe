// A lock for critical sections of some ten nanoseconds: one atomic exchange to take it, one store to let it go. A
// waiter looks again after a pause that doubles each time, so that who holds the lock works undisturbed by its looks;
// at the longest it gives its time slice away too. Meets BasicLockable, for std::lock_guard.
#ifndef ASHLAR_ALLOCATOR_BASE_SPIN_LOCK_H_
#define ASHLAR_ALLOCATOR_BASE_SPIN_LOCK_H_

#include <atomic>
#include <thread>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace ashlar {

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

}  // namespace ashlar

#endif  // ASHLAR_ALLOCATOR_BASE_SPIN_LOCK_H_
