#include "allocator/core/biased_lock.h"

#include <algorithm>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

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

// The seats of threads that have ended. Never destroyed: threads may outlive static destruction.
struct FreeSeats {
  std::mutex mutex;
  std::vector<Seat*> seats;
};
FreeSeats& TheFreeSeats() {
  static FreeSeats& seats = *new FreeSeats;
  return seats;
}

}  // namespace

Seat BiasedLock::nobodys_seat;

// Gives the seat back when the thread ends. What the thread does after that, in other destructors, it does without one.
class BiasedLock::SeatHolder {
 public:
  SeatHolder() {
    FreeSeats& free = TheFreeSeats();
    const std::lock_guard<std::mutex> lock(free.mutex);
    if (free.seats.empty()) free.seats.push_back(new Seat);
    seat_of_thread = free.seats.back();
    free.seats.pop_back();
  }
  ~SeatHolder() {
    FreeSeats& free = TheFreeSeats();
    const std::lock_guard<std::mutex> lock(free.mutex);
    free.seats.push_back(std::exchange(seat_of_thread, &nobodys_seat));
  }
};

void BiasedLock::StopThreads() {
  SeatOfThread();
  TheFreeSeats().mutex.lock();
}
void BiasedLock::LetThreadsGo() { TheFreeSeats().mutex.unlock(); }

const Seat* BiasedLock::SeatOfThread() {
  thread_local const SeatHolder holder;
  return seat_of_thread;
}

void BiasedLock::Enter() {
  SeatOfThread();
  Seat* const self = seat_of_thread;
  lock_.lock();
  if (Seat* const owner = owner_.load(std::memory_order_relaxed); owner != nullptr && owner != self) Revoke(*owner);
  streak_ = last_ == self ? streak_ + 1 : 1;
  last_ = self;
  // From the next time on; until then this thread holds lock_.
  if (streak_ >= wanted_streak_ && self != &nobodys_seat && CanBias()) owner_.store(self, std::memory_order_relaxed);
}

void BiasedLock::LockShared() {
  Enter();
  ++times_taken_;
}

void BiasedLock::Revoke(const Seat& owner) {
  owner_.store(nullptr, std::memory_order_relaxed);
  BarrierOnAllThreads();
  while (owner.inside.load(std::memory_order_acquire) == this) std::this_thread::yield();
  streak_ = 0;
  wanted_streak_ = std::min(2 * wanted_streak_, kLongestStreak);
}

}  // namespace ashlar::core
