#include "allocator/core/biased_lock.h"

#include <algorithm>
#include <thread>

#if defined(__linux__)
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "allocator/base/check.h"

namespace ashlar::core {
namespace {

#if defined(__linux__)
bool MemBarrier(int command) { return syscall(SYS_membarrier, command, 0, 0) == 0; }
bool CanBias() {
  static const bool can = MemBarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
  return can;
}
void BarrierOnAllThreads() {
  // A forked child may have to register again.
  if (MemBarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)) return;
  ASHLAR_CHECK(MemBarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) && MemBarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED));
}
#else
bool CanBias() { return false; }
void BarrierOnAllThreads() {}
#endif

std::atomic<std::uint64_t> last_thread{0};

}  // namespace

void BiasedLock::LockShared() {
  if (this_thread == ~std::uint64_t{0}) this_thread = last_thread.fetch_add(1, std::memory_order_relaxed) + 1;
  lock_.lock();
  if (owner_.load(std::memory_order_relaxed) != 0) Revoke();
  streak_ = last_ == this_thread ? streak_ + 1 : 1;
  last_ = this_thread;
  // From the next time on; until then this thread holds lock_.
  if (streak_ >= wanted_streak_ && CanBias()) owner_.store(this_thread, std::memory_order_relaxed);
}

void BiasedLock::Revoke() {
  owner_.store(0, std::memory_order_relaxed);
  BarrierOnAllThreads();
  while (is_busy_.load(std::memory_order_acquire)) std::this_thread::yield();
  streak_ = 0;
  wanted_streak_ = std::min(2 * wanted_streak_, kLongestStreak);
}

}  // namespace ashlar::core
