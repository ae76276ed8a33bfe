// A lock for a desk, which mostly one thread uses: biased to that thread, taking it is one plain store and two
// loads, no atomic read-modify-write. Another thread first takes the bias away, which costs a system call and stops the
// owner for a moment; a thread that comes often enough without others in between gets it. Each loss doubles how often
// that is, up to a limit.
//
//   const BiasedLock::Guard guard(desk.lock);
//
// Why it holds: the owner says at its own seat that it is inside and then looks whether it still is the owner. Who
// revokes takes the ownership and then looks at the seat of the owner. Between the two steps of the revoker stands
// membarrier(2), which makes every running thread of the process pass a full barrier, so that at least one of the two
// sees the other. A seat is written by its thread alone: one that was stopped between its two steps, for however long,
// writes over nothing that a later owner has said. Where the kernel has no private expedited membarrier (Linux before
// 4.14, other systems) nobody is ever biased to, and this is a spin lock.
//
// A thread is inside one lock in the biased way at a time; who takes several takes them by LockShared.
#ifndef ASHLAR_ALLOCATOR_CORE_BIASED_LOCK_H_
#define ASHLAR_ALLOCATOR_CORE_BIASED_LOCK_H_

#include <atomic>
#include <cstdint>

#include "allocator/base/spin_lock.h"

namespace ashlar::core {

class BiasedLock;

// Where a thread says which lock it is inside of. Goes to a new thread when its own has ended, and its locks with it.
struct alignas(64) Seat {
  std::atomic<const BiasedLock*> inside{nullptr};
};

class BiasedLock {
 public:
  // How it was taken, and has to be let go: at the seat of its owner, or nullptr for the shared way.
  using Way = Seat*;

  // The calling thread's.
  static const Seat* SeatOfThread();

  // How often it was taken; for who holds it.
  std::uint64_t times_taken() const { return times_taken_; }

  Way Lock() {
    const Way way = Take();
    ++times_taken_;
    return way;
  }
  void Unlock(Way way) {
    if (way != nullptr) [[likely]] {
      way->inside.store(nullptr, std::memory_order_release);
    } else {
      lock_.unlock();
    }
  }

  // The shared way, also for the owner, who stays it. To be let go by UnlockShared.
  void LockShared();
  void UnlockShared() { lock_.unlock(); }

  // Around a fork: no thread comes or goes meanwhile, whose seat the child would look for.
  static void StopThreads();
  static void LetThreadsGo();

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
    Seat* const seat = seat_of_thread;
    if (owner_.load(std::memory_order_relaxed) == seat) [[likely]] {
      seat->inside.store(this, std::memory_order_relaxed);
      std::atomic_signal_fence(std::memory_order_seq_cst);  // for the compiler; the revoker sees to the processor
      if (owner_.load(std::memory_order_relaxed) == seat) [[likely]]
        return seat;
      seat->inside.store(nullptr, std::memory_order_release);
    }
    Enter();
    return nullptr;
  }
  void Enter();
  void Revoke(const Seat& owner);

  class SeatHolder;

  static Seat nobodys_seat;  // of threads without one: the owner of nothing
  // Set when the thread first asks for it or takes a lock the shared way.
  static constinit inline thread_local Seat* seat_of_thread = &nobodys_seat;

  std::atomic<Seat*> owner_{nullptr};  // changes under lock_
  std::uint64_t times_taken_ = 0;
  SpinLock lock_;
  // Under lock_.
  const Seat* last_ = nullptr;  // who took it the shared way last
  std::uint64_t streak_ = 0;    // how often in a row
  std::uint64_t wanted_streak_ = kFirstStreak;
};

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_BIASED_LOCK_H_
