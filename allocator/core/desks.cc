// Whose desk is whose, and which engines lie where.
#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

#include "allocator/core/caching_allocator.h"
#include "allocator/core/world.h"

namespace ashlar::core {

Desk& CachingAllocator::FindDesk(const Seat* seat) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  auto it = std::find_if(desks_.begin(), desks_.end(), [seat](const auto& desk) { return desk->seat == seat; });
  if (it == desks_.end()) it = desks_.insert(it, std::make_unique<Desk>(seat));
  return **it;
}

void CachingAllocator::FindDeskOfThread(DeskOfAllocator& out) const {
  Desk& desk = FindDesk(SeatOfThread());
  out = {id_, &desk, &desk};
}

void CachingAllocator::BindEngine(policy::Lane& lane) {
  Engine& engine = engines_.FindOrAdd({lane.pool->id, lane.stream}, *desk_in_world_, this);
  engine.LaneOf(lane.pool->is_small) = &lane;
  lane.owner = &engine;
}

void CachingAllocator::MoveEngine(const EngineKey& key, Desk& to) {
  const World world(*this);
  Engine* engine = engines_.Find(key);
  if (engine == nullptr || engine->desk == &to) return;
  MovePointers(*engine, to);
  engine->visits.Moved();
  engine->desk = &to;
  to.recent_uses = kRecentWorlds;  // so that it gets room
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
