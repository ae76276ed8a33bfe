#include "allocator/core/world.h"

#include <algorithm>
#include <utility>

#include "allocator/base/check.h"

namespace ashlar::core {
namespace {

// What the engine's own sums hold goes to the allocator's.
void Fold(Engine& engine, Stats& stats) {
  for (const bool is_small : {false, true}) {
    Side& side = engine.SideOf(is_small);
    const auto fold = [&side, is_small](EngineStat of, PoolStat& to) {
      to.Fold(is_small, side.dealt[of] - side.left[of], side.increases[of]);
    };
    if (side.increases[kBlocks] != 0 || side.left[kBlocks] != side.dealt[kBlocks]) engine.recent_uses = kRecentWorlds;
    fold(kBlocks, stats.allocation);
    fold(kBlocks, stats.active);
    fold(kBlockBytes, stats.allocated_bytes);
    fold(kBlockBytes, stats.active_bytes);
    fold(kRequestedBytes, stats.requested_bytes);
    fold(kSplitBlocks, stats.inactive_split);
    fold(kSplitBytes, stats.inactive_split_bytes);
    side.left = side.increases = side.dealt = {};  // no room either, until it is dealt
  }
  engine.left = {};
}

// The room below the peaks of one size class, or of both.
Changes Slack(const Stats& stats, PoolKind kind) {
  const auto slack = [kind](const PoolStat& stat) { return stat[kind].Slack(); };
  return {std::min(slack(stats.allocation), slack(stats.active)),
          std::min(slack(stats.allocated_bytes), slack(stats.active_bytes)), slack(stats.requested_bytes),
          slack(stats.inactive_split), slack(stats.inactive_split_bytes)};
}

Changes Share(Changes slack, std::int64_t sharers) {
  for (std::int64_t& room : slack) room /= sharers;
  return slack;
}

}  // namespace

CachingAllocator::World::World(const CachingAllocator& allocator) : allocator_(allocator) {
  if (allocator_.is_gone_.load(std::memory_order_relaxed)) [[unlikely]]
    StopAtGoneAllocator();
  const std::thread::id self = std::this_thread::get_id();
  // A sink's or a filter's call into the allocator, or its fork, would wait for itself.
  ASHLAR_CHECK(allocator_.inside_.load(std::memory_order_relaxed) != self);
  allocator_.mutex_.lock();
  allocator_.inside_.store(self, std::memory_order_relaxed);
  ++allocator_.worlds_;
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
  allocator_.inside_.store({}, std::memory_order_relaxed);
  allocator_.mutex_.unlock();
}

bool CachingAllocator::WantsSerial() const {
  return sink_ != nullptr || CountsAges() || !routes_.empty() || !lost_.ok();
}

bool CachingAllocator::World::IsSerial() const { return allocator_.is_serial_.load(std::memory_order_relaxed); }

void CachingAllocator::World::LockEngines() const {
  for (const std::unique_ptr<Engine>& engine : allocator_.engines_.engines()) {
    engine->lock.LockShared();
    engine->EmptyLog();
    Fold(*engine, allocator_.stats_);
  }
}

void CachingAllocator::World::UnlockEngines() const {
  for (const std::unique_ptr<Engine>& engine : allocator_.engines_.engines()) engine->lock.UnlockShared();
}

// The mode changes while every engine is locked: one that is locked later sees the new one.
void CachingAllocator::World::ChooseMode(CachingAllocator& allocator) const {
  const bool wants_serial = allocator.WantsSerial();
  if (wants_serial == IsSerial()) return;
  if (!wants_serial) LockEngines();
  allocator.is_serial_.store(wants_serial, std::memory_order_release);
  if (wants_serial) UnlockEngines();
}

// Equal shares. Engines that were not used for a while get none, so that the others seldom come back for more.
void CachingAllocator::World::DealRoom() const {
  const auto& engines = allocator_.engines_.engines();
  std::int64_t sharers = 0;
  for (const std::unique_ptr<Engine>& engine : engines) sharers += engine->recent_uses != 0;
  if (sharers == 0) return;
  const Stats& stats = allocator_.stats_;
  const Changes all = Share(Slack(stats, PoolKind::kAll), sharers);
  const Changes small = Share(Slack(stats, PoolKind::kSmall), sharers);
  const Changes large = Share(Slack(stats, PoolKind::kLarge), sharers);
  for (const std::unique_ptr<Engine>& engine : engines) {
    if (engine->recent_uses == 0) continue;
    --engine->recent_uses;
    engine->left = all;
    engine->SideOf(true).left = engine->SideOf(true).dealt = small;
    engine->SideOf(false).left = engine->SideOf(false).dealt = large;
  }
}

void CachingAllocator::BindEngine(policy::Lane& lane) {
  Engine& engine = engines_.FindOrAdd({lane.pool->id, lane.stream}, !is_serial_.load(std::memory_order_relaxed));
  if (engine.allocator == nullptr) engine.allocator = this;
  engine.SideOf(lane.pool->is_small).lane = &lane;
  lane.owner = &engine;
}

void CachingAllocator::UnbindEngines(const policy::Pool& pool) {
  for (const std::unique_ptr<policy::Lane>& lane : pool.lanes) {
    if (lane->owner != nullptr) static_cast<Engine*>(lane->owner)->SideOf(pool.is_small).lane = nullptr;
  }
}

void CachingAllocator::EmptyCache() {
  const World world(*this);
  absl::Status status = CannotReturn("EmptyCache");
  if (status.ok()) {
    EmitFact(trace::FactKind::kEmptyCache, 0);
    status = ReleaseCached(nullptr);
  }
  if (!status.ok()) NoteLoss(world);
  unreported_error_.Update(status);
}

void CachingAllocator::CollectGarbage(std::uint64_t target_bytes) {
  const World world(*this);
  const absl::Status status = CannotReturn("CollectGarbage");
  unreported_error_.Update(status);
  if (!status.ok()) return;
  EmitFact(trace::FactKind::kCollectGarbage, target_bytes);
  ReleaseVictims(target_bytes);
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

bool CachingAllocator::AddSink(trace::EventSink* sink) {
  const World world(*this);
  if (sink_ != nullptr) return false;
  sink_ = sink;
  world.ChooseMode(*this);
  return true;
}

void CachingAllocator::SetFailureReports(bool wanted) {
  const World world(*this);
  reports_failures_ = wanted;
}

void CachingAllocator::WhileStill(absl::FunctionRef<void()> look) const {
  const World world(*this);
  look();
}

absl::Status CachingAllocator::TakeDeviceError() {
  const World world(*this);
  return std::exchange(unreported_error_, absl::OkStatus());
}

CachingAllocator::PathCosts CachingAllocator::path_costs() const {
  const World world(*this);
  PathCosts out;
  out.worlds = worlds_;
  for (const std::unique_ptr<Engine>& engine : engines_.engines()) out.engine_locks += engine->lock.times_taken();
  const auto add = [&out](const policy::PoolPair& pair) {
    for (const policy::Pool* pool : {&pair.small, &pair.large}) {
      for (const std::unique_ptr<policy::Lane>& lane : pool->lanes) {
        out.index_probes += lane->free.probes();
        out.cuts += lane->cuts;
        out.joins += lane->joins;
      }
    }
  };
  add(heap_.default_pair());
  for (const auto& [id, pair] : heap_.private_pairs()) add(*pair);
  return out;
}

const policy::Heap& CachingAllocator::heap() const {
  const World world(*this);  // what the engines' logs hold back becomes real
  return heap_;
}

Stats CachingAllocator::stats() const {
  const World world(*this);
  return stats_;
}

}  // namespace ashlar::core
