#include "allocator/core/world.h"

#include <algorithm>
#include <utility>

namespace ashlar::core {
namespace {

// What the engine's own sums hold goes to the allocator's.
void Fold(Engine& engine, Stats& stats) {
  EngineStats& own = engine.stats;
  const bool is_small = engine.key.is_small;
  const auto fold = [is_small](EngineStat& from, PoolStat& to) {
    to.Fold(is_small, from.change, from.increases);
    from = {};  // no room either, until it is dealt
  };
  if (own.blocks.increases != 0 || own.blocks.change != 0) engine.recent_uses = kRecentWorlds;
  stats.active.Fold(is_small, own.blocks.change, own.blocks.increases);
  stats.active_bytes.Fold(is_small, own.block_bytes.change, own.block_bytes.increases);
  fold(own.blocks, stats.allocation);
  fold(own.block_bytes, stats.allocated_bytes);
  fold(own.requested_bytes, stats.requested_bytes);
  fold(own.split_blocks, stats.inactive_split);
  fold(own.split_bytes, stats.inactive_split_bytes);
}

struct Sharers {
  std::int64_t all = 0;
  std::int64_t small = 0;
  std::int64_t large = 0;
};

// An equal share of the room below the peak over all and below the peak of the engine's size class.
std::int64_t Share(const PoolStat& stat, bool is_small, const Sharers& sharers) {
  const std::int64_t of_all = stat.all().Slack() / sharers.all;
  const Stat& kind = stat[is_small ? PoolKind::kSmall : PoolKind::kLarge];
  return std::min(of_all, kind.Slack() / (is_small ? sharers.small : sharers.large));
}

}  // namespace

CachingAllocator::World::World(const CachingAllocator& allocator) : allocator_(allocator) {
  allocator_.mutex_.lock();
  if (!IsSerial()) LockEngines();
}

CachingAllocator::World::~World() {
  if (allocator_.pending_count_.load(std::memory_order_relaxed) != allocator_.pending_.size()) {
    allocator_.pending_count_.store(allocator_.pending_.size(), std::memory_order_release);
  }
  if (!IsSerial()) {
    DealRoom();
    UnlockEngines();
  }
  allocator_.mutex_.unlock();
}

bool CachingAllocator::WantsSerial() const {
  return sink_ != nullptr || CountsAges() || !routes_.empty() || !lost_.ok();
}

bool CachingAllocator::World::IsSerial() const { return allocator_.is_serial_.load(std::memory_order_relaxed); }

void CachingAllocator::World::LockEngines() const {
  for (const std::unique_ptr<Engine>& engine : allocator_.engines_.engines()) {
    engine->lock.lock();
    Fold(*engine, allocator_.stats_);
  }
}

void CachingAllocator::World::UnlockEngines() const {
  for (const std::unique_ptr<Engine>& engine : allocator_.engines_.engines()) engine->lock.unlock();
}

// The mode changes while every engine is locked: one that is locked later sees the new one.
void CachingAllocator::World::ChooseMode(CachingAllocator& allocator) const {
  const bool wants_serial = allocator.WantsSerial();
  if (wants_serial == IsSerial()) return;
  if (!wants_serial) LockEngines();
  allocator.is_serial_.store(wants_serial, std::memory_order_release);
  if (wants_serial) UnlockEngines();
}

// Engines that were not used for a while get none, so that the others seldom come back for more.
void CachingAllocator::World::DealRoom() const {
  Sharers sharers;
  const auto& engines = allocator_.engines_.engines();
  for (const std::unique_ptr<Engine>& engine : engines) {
    if (engine->recent_uses == 0) continue;
    ++sharers.all;
    ++(engine->key.is_small ? sharers.small : sharers.large);
  }
  const Stats& stats = allocator_.stats_;
  for (const std::unique_ptr<Engine>& owned : engines) {
    Engine& engine = *owned;
    if (engine.recent_uses == 0) continue;
    --engine.recent_uses;
    const bool is_small = engine.key.is_small;
    const auto share = [&](const PoolStat& stat) { return Share(stat, is_small, sharers); };
    engine.stats.blocks.room = std::min(share(stats.allocation), share(stats.active));
    engine.stats.block_bytes.room = std::min(share(stats.allocated_bytes), share(stats.active_bytes));
    engine.stats.requested_bytes.room = share(stats.requested_bytes);
    engine.stats.split_blocks.room = share(stats.inactive_split);
    engine.stats.split_bytes.room = share(stats.inactive_split_bytes);
  }
}

void CachingAllocator::BindEngine(policy::Lane& lane) {
  Engine& engine = engines_.FindOrAdd({lane.pool->id, lane.stream, lane.pool->is_small},
                                      !is_serial_.load(std::memory_order_relaxed));
  engine.lane = &lane;
  lane.owner = &engine;
}

void CachingAllocator::UnbindEngines(const policy::Pool& pool) {
  for (const std::unique_ptr<policy::Lane>& lane : pool.lanes) {
    if (lane->owner != nullptr) static_cast<Engine*>(lane->owner)->lane = nullptr;
  }
}

void CachingAllocator::EmptyCache() {
  const World world(*this);
  absl::Status status = CannotReturn("EmptyCache");
  if (status.ok()) status = ReleaseCached(nullptr);
  if (!status.ok()) NoteLoss(world);
  unreported_error_.Update(status);
}

void CachingAllocator::CollectGarbage(std::uint64_t target_bytes) {
  const World world(*this);
  const absl::Status status = CannotReturn("CollectGarbage");
  unreported_error_.Update(status);
  if (status.ok()) ReleaseVictims(target_bytes);
}

void CachingAllocator::PollEvents() {
  if (pending_count_.load(std::memory_order_acquire) == 0) return;
  const World world(*this);
  PollInWorld(world);
}

void CachingAllocator::AddFreeMemoryCallback(std::function<bool()> callback) {
  const World world(*this);
  callbacks_.push_back(std::move(callback));
}

void CachingAllocator::SetSink(trace::EventSink* sink) {
  const World world(*this);
  sink_ = sink;
  world.ChooseMode(*this);
}

void CachingAllocator::SetFailureReports(bool wanted) {
  const World world(*this);
  reports_failures_ = wanted;
}

absl::Status CachingAllocator::TakeDeviceError() {
  const World world(*this);
  return std::exchange(unreported_error_, absl::OkStatus());
}

Stats CachingAllocator::stats() const {
  const World world(*this);
  return stats_;
}

}  // namespace ashlar::core
