#include "allocator/core/release.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <vector>

namespace ashlar::core {
namespace {

// Reservations whose first page could not be had; in a pool without users nobody will ask for it again.
std::vector<policy::Block*> EmptyReservations(const policy::Pool& pool) {
  std::vector<policy::Block*> out;
  for (const auto& [stream, lane] : pool.lanes) {
    for (const auto& [address, unmapped] : lane.unmapped) {
      if (!unmapped->IsSplit()) out.push_back(unmapped);
    }
  }
  return out;
}

}  // namespace

void DeviceRelease::Garbage(std::uint64_t target_bytes) {
  for (policy::Block* block : ledger_.heap().GarbageVictims(target_bytes)) errors_.Note(Segment(block));
}

bool DeviceRelease::Oversize(const policy::Plan& plan) {
  const policy::Heap::OversizeVictims victims = ledger_.heap().FindOversizeVictims(plan);
  for (policy::Block* block : victims.blocks) errors_.Note(Segment(block));
  return victims.enough;
}

bool DeviceRelease::PagesFor(const policy::Plan& plan, std::uint64_t spare_bytes) {
  const policy::Heap::GrowthPlace place = ledger_.heap().FindLeastGrowth(plan);
  const std::uint64_t wanted = place.map_bytes - std::min(place.map_bytes, spare_bytes);
  if (no_pages_ == Now()) return false;
  ++searches_;
  const std::vector<policy::Heap::FreePages> found = ledger_.heap().PagesToMove(plan, place, wanted);
  // Free blocks where the growth begins are passed over, and private pools open without a free.
  const bool begins_alone = place.start == nullptr || !place.start->IsSplit();
  const bool is_all = begins_alone && wanted > 0 && ledger_.heap().private_pairs().empty();
  if (found.empty() && is_all) no_pages_ = Now();
  std::uint64_t bytes = 0;
  std::set<std::uint64_t> streams;
  for (const policy::Heap::FreePages& free : found) {
    for (const policy::PageRun& run : free.runs) bytes += run.range.size_bytes;
    streams.insert(Handle(free.block->segment->lane->stream));
  }
  if (bytes < wanted || wanted == 0) return false;
  for (const std::uint64_t stream : streams) {
    if (absl::Status status = device_.SynchronizeStream(Stream{stream}); !status.ok()) {
      errors_.Note(status);
      return false;
    }
  }
  for (const policy::Heap::FreePages& free : found) errors_.Note(Unmap(free.block, free.runs));
  return true;
}

absl::Status DeviceRelease::Everything(const policy::PoolPair* in_use) {
  absl::Status status;
  if (nothing_left_ != Now()) {
    status = FreeBlocksOf(ledger_.heap().default_pair().large);
    status.Update(FreeBlocksOf(ledger_.heap().default_pair().small));
    nothing_left_ = status.ok() ? std::optional(Now()) : std::nullopt;
  }
  PrivatePairs& pairs = ledger_.heap().private_pairs();
  for (auto it = pairs.begin(); it != pairs.end();) {
    it = it->second->use_count > 0 ? std::next(it) : PrivatePair(it, in_use, status);
  }
  return status;
}

absl::Status DeviceRelease::PrivatePool(PoolId pool) {
  absl::Status status;
  PrivatePairs& pairs = ledger_.heap().private_pairs();
  if (const auto at = pairs.find(pool); at != pairs.end()) PrivatePair(at, nullptr, status);
  return status;
}

DeviceRelease::PrivatePairs::iterator DeviceRelease::PrivatePair(PrivatePairs::iterator at,
                                                                 const policy::PoolPair* in_use, absl::Status& status) {
  const policy::PoolPair& pair = *at->second;
  status.Update(FreeBlocksOf(pair.small));
  status.Update(FreeBlocksOf(pair.large));
  if (&pair == in_use) return std::next(at);
  for (const policy::Pool* pool : {&pair.small, &pair.large}) {
    for (policy::Block* reservation : EmptyReservations(*pool)) status.Update(Reservation(reservation));
  }
  if (pair.small.segment_count + pair.large.segment_count > 0) return std::next(at);
  return ledger_.heap().private_pairs().erase(at);
}

absl::Status DeviceRelease::FreeBlocksOf(const policy::Pool& pool) {
  ++searches_;
  const std::vector<policy::Block*> expandable = policy::Heap::FreeExpandable(pool);
  absl::Status status;
  for (policy::Block* block : policy::Heap::WholeFree(pool)) status.Update(Segment(block));
  for (policy::Block* block : expandable) status.Update(Pages(block));
  return status;
}

absl::Status DeviceRelease::Segment(policy::Block* whole) {
  absl::Status status = device_.FreeSegment(whole->segment->address);
  ledger_.RemoveSegment(whole);
  return status;
}

absl::Status DeviceRelease::Pages(policy::Block* block) {
  const std::vector<policy::PageRun> runs = policy::Heap::WholePages(block);
  if (runs.empty()) return absl::OkStatus();
  if (absl::Status status = device_.SynchronizeStream(block->segment->lane->stream); !status.ok()) return status;
  return Unmap(block, runs);
}

// The work of the block's stream is done. Runs by address: after each, `block` is what lies above it.
absl::Status DeviceRelease::Unmap(policy::Block* block, const std::vector<policy::PageRun>& runs) {
  absl::Status status;
  for (const policy::PageRun& run : runs) {
    status.Update(device_.Unmap(run.range.address, run.range.size_bytes, run.page_bytes));
    policy::Block* unmapped = ledger_.MarkUnmapped(block, run.range);
    if (!unmapped->IsSplit()) status.Update(Reservation(unmapped));
  }
  return status;
}

absl::Status DeviceRelease::Reservation(policy::Block* unmapped) {
  absl::Status status = device_.ReleaseReservation(unmapped->address);
  ledger_.RemoveReservation(unmapped);
  return status;
}

}  // namespace ashlar::core
