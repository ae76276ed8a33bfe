// A lock for critical sections of some ten nanoseconds: one atomic exchange to take it, one store to let it go. A
// waiter spins for a while, then gives its time slice away. Meets BasicLockable, for std::lock_guard.
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
    while (is_taken_.exchange(true, std::memory_order_acquire)) Wait();
  }
  void unlock() { is_taken_.store(false, std::memory_order_release); }

 private:
  static constexpr int kSpins = 200;  // about as long as a critical section under contention

  void Wait() const {
    for (int i = 0; i < kSpins; ++i) {
      if (!is_taken_.load(std::memory_order_relaxed)) return;
#if defined(__x86_64__)
      _mm_pause();
#endif
    }
    std::this_thread::yield();
  }

  std::atomic<bool> is_taken_{false};
};

}  // namespace ashlar

#endif  // ASHLAR_ALLOCATOR_BASE_SPIN_LOCK_H_
