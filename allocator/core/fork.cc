// How an allocator begins and ends, and fork() while other threads use allocators: every allocator stands still
// meanwhile, so that the child's copy is whole. What the child may do with it is the device's to say: simulated and
// host memory is its own, a CUDA device is lost.
#include <pthread.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "allocator/base/check.h"
#include "allocator/core/caching_allocator.h"
#include "allocator/core/seat.h"
#include "allocator/device/fork_count.h"

namespace ashlar::core {
namespace {

device::Device* NotNull(device::Device* device) {
  if (device == nullptr) StopAtMisuse("CachingAllocator: its device is null: open one first (docs/library/devices.md)");
  return device;
}

}  // namespace

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
      sections_.push_back(std::make_unique<ExclusiveSection>(allocator->desks()));
      sections_.back()->StopDesks();  // a lock that another thread holds would be held for ever in the child
    }
    LockSeats();
  }
  void After() {
    UnlockSeats();
    sections_.clear();
    mutex_.unlock();
  }
  void AfterInChild() {
    for (std::size_t i = 0; i < sections_.size(); ++i) allocators_[i]->BecomeForked(*sections_[i]);
    After();
  }

  std::mutex mutex_;
  std::vector<CachingAllocator*> allocators_;                // as they were made
  std::vector<std::unique_ptr<ExclusiveSection>> sections_;  // theirs, while a fork is under way
};

void CachingAllocator::BecomeForked(const ExclusiveSection& section) {
  if (ledger_.sink() != nullptr && !ledger_.sink()->OnFork()) UseSink(section, nullptr, nullptr);
  NoteLoss(section);
}

CachingAllocator::CachingAllocator(device::Device* device, policy::Options options)
    : device_(NotNull(device)),
      ledger_(std::move(options),
              [this](policy::Lane& lane, const policy::AddressRange& range) { fast_path_.Forget(lane, range); }),
      fast_path_(ledger_),
      pools_(ledger_),
      limits_(ledger_.options(), device->GetMemoryInfo().total_bytes),
      ladder_(ledger_, *device_, pending_, limits_, pools_),
      failures_(ledger_, limits_, pools_) {
  desks().BeginSerial(WantsSerial());
  Forks::Instance().Add(this);
}

CachingAllocator::~CachingAllocator() {
  desks().CheckLeft();
  if (failures_.WantsLeaks()) {
    const ExclusiveSection section(desks());
    // Memory of a lost device is gone.
    if (ladder_.errors().lost().ok()) failures_.TellLiveBlocks();
  }
  Forks::Instance().Remove(this);
  desks().Close();
}

}  // namespace ashlar::core
