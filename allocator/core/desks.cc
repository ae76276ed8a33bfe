#include "allocator/core/desks.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "allocator/base/check.h"
#include "allocator/core/fast_path.h"
#include "allocator/policy/heap.h"

namespace ashlar::core {

// A free of the newest block leads back to sums that were there before, and to a map that nothing has touched since.
void Desk::SettleNewest() {
  policy::Block* block = newest.block();
  const policy::Heap::ReleaseEffect effect = policy::Heap::EffectOfRelease(*block);
  CountRepeats(*block, effect.splits);
  if (newest.is_put_off()) {
    CountFreeUnchecked(block->is_small, Signed(block->size_bytes), Signed(block->requested_bytes), effect.splits);
    if (newest.is_named()) pointers.Erase({block, newest.slot()});
    policy::Heap::ReleaseAs(*block->segment->lane, block, effect);
  }
  newest.Settled();
}

// Each repeat was an allocation, and raised the split blocks on the way there or back.
void Desk::CountRepeats(const policy::Block& block, const policy::SplitCounts& splits) {
  SizeClass& sums = SizeClassOf(block.is_small);
  sums.increases[kBlocks] += newest.repeats();
  sums.increases[kBlockBytes] += newest.repeats() * Signed(block.size_bytes);
  sums.increases[kSplitBlocks] += newest.repeats() * std::abs(splits.blocks);
  sums.increases[kSplitBytes] += newest.repeats() * std::abs(splits.bytes);
}

namespace {

std::atomic<std::uint64_t> allocators_so_far{0};

}  // namespace

Desks::Desks(Ledger& ledger) : id_(++allocators_so_far), ledger_(ledger) {}

Desk& Desks::Find(const Seat* seat) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto it = std::find_if(desks_.begin(), desks_.end(), [seat](const auto& desk) { return desk->seat == seat; });
  if (it != desks_.end()) return **it;
  auto desk = std::make_unique<Desk>(seat);
  if (keeper_ != nullptr) desk->journal = keeper_->JournalOf(desks_.size());
  return *desks_.emplace_back(std::move(desk));
}

void Desks::SetKeeper(JournalKeeper* keeper) {
  keeper_ = keeper;
  for (std::size_t i = 0; i < desks_.size(); ++i) {
    desks_[i]->journal = keeper == nullptr ? nullptr : keeper->JournalOf(i);
  }
}

DeskOfAllocator& Desks::FindOfThread() {
  Seat* const seat = SeatOfThread();
  Desk& desk = Find(seat);
  return seat->desks[id_ % seat->desks.size()] = {id_, &desk, &desk};
}

// A call that comes all the same goes to the section, and stops there, as long as this memory is nobody else's.
void Desks::Close() {
  is_serial_.store(true, std::memory_order_relaxed);
  is_closed_.store(true, std::memory_order_relaxed);
}

void Desks::CheckOpen() const {
  if (is_closed_.load(std::memory_order_relaxed)) [[unlikely]]
    StopAtGoneAllocator();
}

std::uint64_t Desks::LockCount() const {
  std::uint64_t count = 0;
  for (const std::unique_ptr<Desk>& desk : desks_) count += desk->lock.times_taken();
  return count;
}

namespace {

Changes Minus(const Changes& a, const Changes& b) {
  Changes out{};
  for (int i = 0; i < kChangesOf; ++i) out[i] = a[i] - b[i];
  return out;
}

Changes Share(Changes room, std::int64_t sharers) {
  for (std::int64_t& part : room) part /= sharers;
  return room;
}

}  // namespace

ExclusiveSection::ExclusiveSection(Desks& desks) : desks_(desks) {
  desks_.CheckOpen();
  const std::thread::id self = std::this_thread::get_id();
  // A sink's or a filter's call into the allocator, or its fork, would wait for itself.
  ASHLAR_CHECK(desks_.inside_.load(std::memory_order_relaxed) != self);
  Desk& mine = *desks_.OfThread().desk;
  desks_.mutex_.lock();
  desks_.desk_of_section_ = &mine;
  desks_.inside_.store(self, std::memory_order_relaxed);
  ++desks_.section_count_;
  if (!desks_.IsSerialNow()) LockDesks();
}

ExclusiveSection::~ExclusiveSection() {
  if (!desks_.IsSerialNow()) DealRoom();
  if (holds_desks_) UnlockDesks();
  desks_.inside_.store({}, std::memory_order_relaxed);
  desks_.mutex_.unlock();
}

void ExclusiveSection::LockDesks() const {
  holds_desks_ = true;
  bool has_recorded = false;
  for (const std::unique_ptr<Desk>& desk : desks_.desks_) {
    if (desk.get() == desks_.desk_of_section_) {
      is_own_biased_ = desk->lock.LockAsOwner();
    } else {
      desk->lock.lock();
    }
    desk->Settle();
    Fold(*desk);
    has_recorded |= desk->journal != nullptr && desk->journal->turn() == desks_.turn_;
  }
  if (has_recorded) ++desks_.turn_;
}

void ExclusiveSection::UnlockDesks() const {
  for (const std::unique_ptr<Desk>& desk : desks_.desks_) {
    if (desk.get() == desks_.desk_of_section_) {
      desk->lock.UnlockAsOwner(is_own_biased_);
    } else {
      desk->lock.unlock();
    }
  }
  holds_desks_ = false;
}

void ExclusiveSection::StopDesks() const {
  if (!holds_desks_) LockDesks();
}

// The mode changes while every desk is locked: one that is locked later sees the new one.
void ExclusiveSection::SetSerial(bool is_serial) const {
  if (is_serial == desks_.IsSerialNow()) return;
  StopDesks();
  desks_.is_serial_.store(is_serial, std::memory_order_release);
}

// What the desk's own sums hold goes to the ledger. No room is left either, until it is dealt.
void ExclusiveSection::Fold(Desk& desk) const {
  for (const bool is_small : {false, true}) {
    SizeClass& sums = desk.SizeClassOf(is_small);
    if (sums.increases[kBlocks] != 0 || sums.left[kBlocks] != sums.dealt[kBlocks]) desk.recent_uses = kRecentSections;
    desks_.ledger_.Fold(is_small, Minus(sums.dealt, sums.left), sums.increases);
    sums.left = sums.increases = sums.dealt = {};
  }
  desk.left = {};
}

// Equal shares. Desks that were not used for a while get none, so that the others seldom come back for more.
void ExclusiveSection::DealRoom() const {
  const auto& desks = desks_.desks_;
  const std::int64_t sharers =
      std::count_if(desks.begin(), desks.end(), [](const auto& desk) { return desk->recent_uses != 0; });
  if (sharers == 0) return;
  const Changes all = Share(desks_.ledger_.RoomBelowPeaks(PoolKind::kAll), sharers);
  const Changes small = Share(desks_.ledger_.RoomBelowPeaks(PoolKind::kSmall), sharers);
  const Changes large = Share(desks_.ledger_.RoomBelowPeaks(PoolKind::kLarge), sharers);
  for (const std::unique_ptr<Desk>& desk : desks) {
    if (desk->recent_uses == 0) continue;
    --desk->recent_uses;
    desk->left = all;
    desk->SizeClassOf(true).left = desk->SizeClassOf(true).dealt = small;
    desk->SizeClassOf(false).left = desk->SizeClassOf(false).dealt = large;
  }
}

}  // namespace ashlar::core
