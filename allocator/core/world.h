// While a World exists, its thread has the allocator for itself: the mutex, and every desk's lock unless the allocator
// is serial, where no desk works on its own. On the way in what the desks did is folded into the
// statistics, which are complete and exact inside; on the way out the room below the peaks is dealt out
// to the desks again (desk.h). It costs by the threads there are, not by the streams. Locks are always taken in this
// order, mutex first, desks as they were made.
#ifndef ASHLAR_ALLOCATOR_CORE_WORLD_H_
#define ASHLAR_ALLOCATOR_CORE_WORLD_H_

#include "allocator/core/caching_allocator.h"

namespace ashlar::core {

class CachingAllocator::World {
 public:
  explicit World(const CachingAllocator& allocator);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // Serial while there is a sink (events need one order), ages are counted (each request ages the whole pool), requests
  // are routed to private pools, or the device is lost.
  void ChooseMode(CachingAllocator& allocator) const;
  // Also where the allocator is serial: a thread that has not yet seen so may be inside its desk's lock.
  void StopDesks() const;

 private:
  bool IsSerial() const;
  void LockDesks() const;
  void UnlockDesks() const;
  void DealRoom() const;

  const CachingAllocator& allocator_;
  mutable bool holds_desks_ = false;
};

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_WORLD_H_
