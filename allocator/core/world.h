// While a World exists, its thread has the allocator for itself: the mutex, and every engine's lock unless the
// allocator is serial, where no engine works on its own. On the way in what the engines did is folded into the
// statistics, which are complete and exact inside; on the way out the room below the peaks is dealt out to the
// engines again (engine.h). Locks are always taken in this order, mutex first, engines as they were added.
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

 private:
  bool IsSerial() const;
  void LockEngines() const;
  void UnlockEngines() const;
  void DealRoom() const;

  const CachingAllocator& allocator_;
};

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_WORLD_H_
