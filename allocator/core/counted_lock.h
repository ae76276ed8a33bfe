// A spin lock that counts how often it was taken. Meets BasicLockable, for std::lock_guard.
#ifndef ASHLAR_ALLOCATOR_CORE_COUNTED_LOCK_H_
#define ASHLAR_ALLOCATOR_CORE_COUNTED_LOCK_H_

#include <cstdint>

#include "allocator/base/spin_lock.h"

namespace ashlar::core {

class CountedLock {
 public:
  void lock() {
    lock_.lock();
    ++times_taken_;
  }
  void unlock() { lock_.unlock(); }

  // For who holds it.
  std::uint64_t times_taken() const { return times_taken_; }

 private:
  SpinLock lock_;
  std::uint64_t times_taken_ = 0;
};

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_COUNTED_LOCK_H_
