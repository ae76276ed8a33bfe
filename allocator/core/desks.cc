#include "allocator/core/desks.h"

#include <algorithm>
#include <utility>

#include "allocator/core/misuse.h"

namespace ashlar::core {
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

}  // namespace ashlar::core
