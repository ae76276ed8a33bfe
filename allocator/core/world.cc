#include "allocator/core/world.h"

#include <algorithm>
#include <utility>

#include "allocator/base/check.h"

namespace ashlar::core {
namespace {

// What the desk's own sums hold goes to the allocator's.
void Fold(Desk& desk, Stats& stats) {
  for (const bool is_small : {false, true}) {
    Side& side = desk.SideOf(is_small);
    const auto fold = [&side, is_small](DeskStat of, PoolStat& to) {
      to.Fold(is_small, side.dealt[of] - side.left[of], side.increases[of]);
    };
    if (side.increases[kBlocks] != 0 || side.left[kBlocks] != side.dealt[kBlocks]) desk.recent_uses = kRecentWorlds;
    fold(kBlocks, stats.allocation);
    fold(kBlocks, stats.active);
    fold(kBlockBytes, stats.allocated_bytes);
    fold(kBlockBytes, stats.active_bytes);
    fold(kRequestedBytes, stats.requested_bytes);
    fold(kSplitBlocks, stats.inactive_split);
    fold(kSplitBytes, stats.inactive_split_bytes);
    side.left = side.increases = side.dealt = {};  // no room either, until it is dealt
  }
  desk.left = {};
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
  Desk& mine = *allocator_.DeskOfThread().desk;
  allocator_.mutex_.lock();
  allocator_.desk_in_world_ = &mine;
  allocator_.inside_.store(self, std::memory_order_relaxed);
  ++allocator_.worlds_;
  if (!IsSerial()) LockDesks();
}

CachingAllocator::World::~World() {
  if (allocator_.pending_count_.load(std::memory_order_relaxed) != allocator_.pending_.size()) {
    allocator_.pending_count_.store(allocator_.pending_.size(), std::memory_order_release);
  }
  if (!IsSerial()) DealRoom();
  if (holds_desks_) UnlockDesks();
  allocator_.inside_.store({}, std::memory_order_relaxed);
  allocator_.mutex_.unlock();
}

bool CachingAllocator::WantsSerial() const {
  return sink_ != nullptr || CountsAges() || !routes_.empty() || !lost_.ok();
}

bool CachingAllocator::World::IsSerial() const { return allocator_.is_serial_.load(std::memory_order_relaxed); }

void CachingAllocator::World::LockDesks() const {
  holds_desks_ = true;
  for (const std::unique_ptr<Desk>& desk : allocator_.desks_) {
    desk->lock.lock();
    Fold(*desk, allocator_.stats_);
  }
}

void CachingAllocator::World::UnlockDesks() const {
  for (const std::unique_ptr<Desk>& desk : allocator_.desks_) desk->lock.unlock();
  holds_desks_ = false;
}

void CachingAllocator::World::StopDesks() const {
  if (!holds_desks_) LockDesks();
}

// The mode changes while every desk is locked: one that is locked later sees the new one.
void CachingAllocator::World::ChooseMode(CachingAllocator& allocator) const {
  const bool wants_serial = allocator.WantsSerial();
  if (wants_serial == IsSerial()) return;
  StopDesks();
  allocator.is_serial_.store(wants_serial, std::memory_order_release);
}

// Equal shares. Desks that were not used for a while get none, so that the others seldom come back for more.
void CachingAllocator::World::DealRoom() const {
  const auto& desks = allocator_.desks_;
  const std::int64_t sharers =
      std::count_if(desks.begin(), desks.end(), [](const auto& desk) { return desk->recent_uses != 0; });
  if (sharers == 0) return;
  const Stats& stats = allocator_.stats_;
  const Changes all = Share(Slack(stats, PoolKind::kAll), sharers);
  const Changes small = Share(Slack(stats, PoolKind::kSmall), sharers);
  const Changes large = Share(Slack(stats, PoolKind::kLarge), sharers);
  for (const std::unique_ptr<Desk>& desk : desks) {
    if (desk->recent_uses == 0) continue;
    --desk->recent_uses;
    desk->left = all;
    desk->SideOf(true).left = desk->SideOf(true).dealt = small;
    desk->SideOf(false).left = desk->SideOf(false).dealt = large;
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
  world.StopDesks();  // a thread that has not yet seen that the allocator is serial counts its lock
  PathCosts out;
  out.worlds = worlds_;
  for (const std::unique_ptr<Desk>& desk : desks_) out.desk_locks += desk->lock.times_taken();
  out.engines = engines_.size();
  const policy::LaneCosts lanes = heap_.Costs();
  out.index_probes = lanes.probes;
  out.cuts = lanes.cuts;
  out.joins = lanes.joins;
  return out;
}

const policy::Heap& CachingAllocator::heap() const {
  const World world(*this);
  return heap_;
}

Stats CachingAllocator::stats() const {
  const World world(*this);
  return stats_;
}

}  // namespace ashlar::core
