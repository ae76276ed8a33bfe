// fork() while other threads use allocators: every allocator stands still meanwhile, so that the child's copy is whole.
// What the child may do with it is the device's to say: simulated and host memory is its own, a CUDA device is lost.
#include <pthread.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

#include "allocator/base/check.h"
#include "allocator/core/caching_allocator.h"
#include "allocator/core/seat.h"
#include "allocator/core/world.h"
#include "allocator/device/fork_count.h"

namespace ashlar::core {

class CachingAllocator::Forks {
 public:
  // Never destroyed: allocators may outlive static destruction.
  static Forks& Instance() {
    static Forks& forks = *new Forks;
    return forks;
  }

  void Add(CachingAllocator* allocator) {
    const std::lock_guard<std::mutex> lock(mutex_);
    allocators_.push_back(allocator);
  }
  void Remove(CachingAllocator* allocator) {
    const std::lock_guard<std::mutex> lock(mutex_);
    allocators_.erase(std::find(allocators_.begin(), allocators_.end(), allocator));
  }

 private:
  Forks() {
    device::ForkCount();  // counts from now on, and before AfterInChild asks devices
    pthread_atfork([] { Instance().Before(); }, [] { Instance().After(); }, [] { Instance().AfterInChild(); });
  }

  void Before() {
    mutex_.lock();
    for (const CachingAllocator* allocator : allocators_) {
      worlds_.push_back(std::make_unique<World>(*allocator));
      worlds_.back()->StopDesks();  // a lock that another thread holds would be held for ever in the child
    }
    LockSeats();
  }
  void After() {
    UnlockSeats();
    worlds_.clear();
    mutex_.unlock();
  }
  void AfterInChild() {
    for (std::size_t i = 0; i < worlds_.size(); ++i) allocators_[i]->BecomeForked(*worlds_[i]);
    After();
  }

  std::mutex mutex_;
  std::vector<CachingAllocator*> allocators_;   // as they were made
  std::vector<std::unique_ptr<World>> worlds_;  // theirs, while a fork is under way
};

void CachingAllocator::BecomeForked(const World& world) {
  if (sink_ != nullptr && !sink_->OnFork()) sink_ = nullptr;
  world.ChooseMode(*this);
  NoteLoss(world);
}

void CachingAllocator::JoinForks() { Forks::Instance().Add(this); }

CachingAllocator::~CachingAllocator() {
  ASHLAR_CHECK(inside_.load(std::memory_order_relaxed) == std::thread::id());
  TellLiveBlocks();
  Forks::Instance().Remove(this);
  // A call that comes all the same goes to the World, and stops there, as long as this memory is nobody else's.
  is_serial_.store(true, std::memory_order_relaxed);
  is_gone_.store(true, std::memory_order_relaxed);
}

}  // namespace ashlar::core
