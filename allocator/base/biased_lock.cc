#include "allocator/base/biased_lock.h"

#include <chrono>
#include <thread>

#if defined(__linux__) && defined(__x86_64__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace ashlar {
namespace {

// Of linux/membarrier.h, which older systems' headers lack.
#if defined(__linux__) && defined(__x86_64__)
bool Membarrier(int command) { return syscall(SYS_membarrier, command, 0, 0) == 0; }
bool Register() { return Membarrier(1 << 4); }   // MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED
bool Interrupt() { return Membarrier(1 << 3); }  // MEMBARRIER_CMD_PRIVATE_EXPEDITED
#else
bool Register() { return false; }
bool Interrupt() { return false; }
#endif

std::atomic<bool>& MayBias() {
  static std::atomic<bool> may_bias{Register()};
  return may_bias;
}

// Every thread of the process has run a full barrier when this returns.
void StopOthers() {
  if (Interrupt() || (Register() && Interrupt())) return;
  // The system took the call away after it had given it: a filter that came late. No lock is biased again. A processor
  // of this kind shows a store within microseconds.
  MayBias().store(false, std::memory_order_relaxed);
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace

bool BiasedLock::CanBias() { return MayBias().load(std::memory_order_relaxed); }

// Under lock_, by the owner. Who comes next waits for the lock inside, which the owner holds for this once.
void BiasedLock::Rebias() {
  turns_of_owner_ = 0;
  if (has_owner_ && CanBias()) is_shared_.store(false, std::memory_order_release);
}

// Under lock_. The owner is inside, or will see that the lock is shared.
void BiasedLock::TakeBias() {
  is_shared_.store(true, std::memory_order_seq_cst);
  if (wanted_turns_ < kMostTurns) wanted_turns_ = static_cast<std::uint16_t>(2 * wanted_turns_);
  StopOthers();
  lock_.WaitUntil([this] { return !is_owner_inside_.load(std::memory_order_acquire); });
}

}  // namespace ashlar
