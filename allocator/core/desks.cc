// Whose desk is whose, and which engines lie where.
#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

#include "allocator/core/caching_allocator.h"
#include "allocator/core/world.h"

namespace ashlar::core {

Desk& CachingAllocator::FindDeskOfThread() const {
  const Seat* seat = BiasedLock::SeatOfThread();
  const std::lock_guard<std::mutex> lock(mutex_);
  auto it = std::find_if(desks_.begin(), desks_.end(), [seat](const auto& desk) { return desk->seat == seat; });
  if (it == desks_.end()) it = desks_.insert(it, std::make_unique<Desk>(seat));
  desks_of_thread[id_ % desks_of_thread.size()] = {id_, it->get()};
  return **it;
}

void CachingAllocator::BindEngine(policy::Lane& lane) {
  Engine& engine = engines_.FindOrAdd({lane.pool->id, lane.stream}, *desk_in_world_, this);
  engine.LaneOf(lane.pool->is_small) = &lane;
  lane.owner = &engine;
}

void CachingAllocator::MoveEngine(const EngineKey& key) {
  const World world(*this);
  Engine* engine = engines_.Find(key);
  if (engine == nullptr || engine->desk == desk_in_world_) return;
  MovePointers(*engine, *desk_in_world_);
  engine->visits.Moved();
  engine->desk = desk_in_world_;
}

void CachingAllocator::MovePointers(const Engine& engine, Desk& to) {
  PointerMap& from = engine.desk->pointers;
  std::vector<policy::Block*> named;
  from.ForEach([&](policy::Block* block) {
    if (EngineOf(*block) == &engine) named.push_back(block);
  });
  for (policy::Block* block : named) {
    from.Take(block->address);
    to.pointers.Insert(block);
  }
}

void CachingAllocator::ForgetIfEmpty(policy::Lane& lane, std::uint64_t begin, std::uint64_t end) {
  auto* engine = static_cast<Engine*>(lane.owner);
  if (engine != nullptr) pages_.Leave(begin, end, engine);
  if (lane.segment_count > 0) return;
  if (engine != nullptr) {
    engine->LaneOf(lane.pool->is_small) = nullptr;
    if (engine->IsEmpty()) engines_.Erase(*engine);
  }
  heap_.RemoveLane(lane);
}

}  // namespace ashlar::core
