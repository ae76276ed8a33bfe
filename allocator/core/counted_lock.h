// The lock of a desk: biased to the thread whose desk it is, and it counts how often it was taken.
//
//   CountedLock lock(true);
//   const HeldLock held(lock, is_mine);
#ifndef ASHLAR_ALLOCATOR_CORE_COUNTED_LOCK_H_
#define ASHLAR_ALLOCATOR_CORE_COUNTED_LOCK_H_

#include <cstdint>

#include "allocator/base/biased_lock.h"

namespace ashlar::core {

class CountedLock {
 public:
  explicit CountedLock(bool has_owner) : lock_(has_owner) {}

  // By its owner; the second with the first's answer.
  bool LockAsOwner() {
    const bool is_biased = lock_.LockAsOwner();
    ++times_taken_;
    return is_biased;
  }
  void UnlockAsOwner(bool is_biased) { lock_.UnlockAsOwner(is_biased); }
  // By any thread.
  void lock() {
    lock_.lock();
    ++times_taken_;
  }
  void unlock() { lock_.unlock(); }

  // For who holds it.
  std::uint64_t times_taken() const { return times_taken_; }

 private:
  BiasedLock lock_;
  std::uint64_t times_taken_ = 0;
};

// Holds it while it exists. `is_mine`: the lock is the calling thread's.
class HeldLock {
 public:
  HeldLock(CountedLock& lock, bool is_mine) : lock_(lock), is_mine_(is_mine) {
    if (is_mine) [[likely]] {
      is_biased_ = lock.LockAsOwner();
    } else {
      lock.lock();
    }
  }
  ~HeldLock() {
    if (is_mine_) [[likely]] {
      lock_.UnlockAsOwner(is_biased_);
    } else {
      lock_.unlock();
    }
  }
  HeldLock(const HeldLock&) = delete;
  HeldLock& operator=(const HeldLock&) = delete;

 private:
  CountedLock& lock_;
  const bool is_mine_;
  bool is_biased_ = false;
};

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_COUNTED_LOCK_H_
