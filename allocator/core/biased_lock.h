// A lock for an engine, which mostly one thread uses: biased to that thread, taking it is one plain store and two
// loads, no atomic read-modify-write. Another thread first takes the bias away, which costs a system call and stops the
// owner for a moment; a thread that comes often enough without others in between gets it. Each loss doubles how often
// that is, up to a limit.
//
//   const BiasedLock::Guard guard(engine.lock);
//
// Why it holds: the owner says that it is busy and then looks whether it still is the owner. Who revokes takes the
// ownership and then looks whether the owner is busy. Between the two steps of the revoker stands membarrier(2), which
// makes every running thread of the process pass a full barrier, so that at least one of the two sees the other. Where
// the kernel has no private expedited membarrier (Linux before 4.14, other systems) nobody is ever biased to, and this
// is a spin lock.
#ifndef ASHLAR_ALLOCATOR_CORE_BIASED_LOCK_H_
#define ASHLAR_ALLOCATOR_CORE_BIASED_LOCK_H_

#include <atomic>
#include <cstdint>

#include "allocator/base/spin_lock.h"

namespace ashlar::core {

class BiasedLock {
 public:
  enum class Way : bool { kShared, kBiased };  // how it was taken, and has to be let go

  // How often it was taken; for who holds it.
  std::uint64_t times_taken() const { return times_taken_; }

  Way Lock() {
    const Way way = Take();
    ++times_taken_;
    return way;
  }
  void Unlock(Way way) {
    if (way == Way::kBiased) [[likely]] {
      is_busy_.store(false, std::memory_order_release);
    } else {
      lock_.unlock();
    }
  }

  class Guard {
   public:
    explicit Guard(BiasedLock& lock) : lock_(lock), way_(lock.Lock()) {}
    ~Guard() { lock_.Unlock(way_); }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    BiasedLock& lock_;
    const Way way_;
  };

 private:
  static constexpr std::uint64_t kFirstStreak = 64;
  static constexpr std::uint64_t kLongestStreak = 4096;  // makes what a loss costs, 1 us or so, nothing for each use

  Way Take() {
    const std::uint64_t self = this_thread;
    if (owner_.load(std::memory_order_relaxed) == self) [[likely]] {
      is_busy_.store(true, std::memory_order_relaxed);
      std::atomic_signal_fence(std::memory_order_seq_cst);  // for the compiler; the revoker sees to the processor
      if (owner_.load(std::memory_order_relaxed) == self) [[likely]]
        return Way::kBiased;
      is_busy_.store(false, std::memory_order_release);
    }
    LockShared();
    return Way::kShared;
  }
  void LockShared();
  void Revoke();

  // A number of its own for each thread that ever took a lock the shared way; before, one that nobody has.
  static constinit inline thread_local std::uint64_t this_thread = ~std::uint64_t{0};

  std::atomic<std::uint64_t> owner_{0};  // 0 = nobody; changes under lock_
  std::atomic<bool> is_busy_{false};     // the owner is inside
  std::uint64_t times_taken_ = 0;
  SpinLock lock_;
  // Under lock_.
  std::uint64_t last_ = 0;    // who took it the shared way last
  std::uint64_t streak_ = 0;  // how often in a row
  std::uint64_t wanted_streak_ = kFirstStreak;
};

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_BIASED_LOCK_H_
