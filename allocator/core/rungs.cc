#include "allocator/core/rungs.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <vector>

#include "absl/status/statusor.h"
#include "allocator/base/units.h"
#include "allocator/policy/ashlar_strategy.h"

namespace ashlar::core {

GrowthResult DeviceGrowth::Grow(const policy::Decision& decision) {
  const std::uint64_t reserved_bytes = ledger_.heap().reserved_bytes();
  const std::uint64_t bytes = strategy_.GrowthBytes(decision);
  if (limits_.AreExceeded(reserved_bytes, bytes)) return Refused(bytes);
  if (limits_.Reject(reserved_bytes, bytes)) return {.refusal = Refusal::kRejected};
  if (!ledger_.heap().TakesPages(*decision.pool)) return NewSegment(decision);
  GrowthResult grown = GrowExpandable(decision);
  if (!absl::IsUnimplemented(grown.error) || ledger_.options().expandable_segments) return grown;
  ledger_.heap().Pair(decision.pool->id).takes_pages = false;  // the device has none
  return NewSegment(decision);
}

GrowthResult DeviceGrowth::Refused(std::uint64_t bytes) {
  ledger_.Note(trace::fact::GrowthRefused{bytes});
  return {.refusal = Refusal::kOutOfMemory};
}

GrowthResult DeviceGrowth::Failed(const absl::Status& status, std::uint64_t bytes) {
  if (absl::IsResourceExhausted(status)) return Refused(bytes);
  return {.refusal = Refusal::kDeviceError, .error = status};
}

GrowthResult DeviceGrowth::NewSegment(const policy::Decision& decision) {
  PoolMemory* const memory = decision.pair->memory.get();
  if (memory != nullptr) {
    const std::uint64_t given = memory->Allocate(decision.segment_bytes);
    if (given == 0) return Refused(decision.segment_bytes);
    return {.block = ledger_.AddSegment(decision, given)};
  }
  const absl::StatusOr<std::uint64_t> address = device_.AllocateSegment(decision.segment_bytes);
  if (!address.ok()) return Failed(address.status(), decision.segment_bytes);
  return {.block = ledger_.AddSegment(decision, *address)};
}

GrowthResult DeviceGrowth::GrowExpandable(const policy::Decision& decision) {
  GrowthResult grown{.block = strategy_.FindGrowth(decision)};
  if (grown.block == nullptr) grown = NewReservation(decision);
  if (grown.block == nullptr) return grown;
  if (grown.block->state == policy::BlockUse::kUnmapped) {
    grown = Map(grown.block, std::min(grown.block->size_bytes, decision.rounded_bytes));
  }
  while (grown.block != nullptr && grown.block->size_bytes < decision.rounded_bytes) {
    policy::Block* unmapped = grown.block->next;
    if (unmapped == nullptr) return {.refusal = Refusal::kOutOfMemory};  // the reservation is smaller than the request
    grown = Map(unmapped, std::min(decision.rounded_bytes - grown.block->size_bytes, unmapped->size_bytes));
  }
  if (grown.block != nullptr) policy::Heap::TakeFree(grown.block);
  return grown;
}

// The block that holds the pages mapped, merged with its free neighbours. Other programs take memory too: what is
// refused in large pages is asked for in small ones.
GrowthResult DeviceGrowth::Map(policy::Block* unmapped, std::uint64_t wanted_bytes) {
  const std::uint64_t reserved_bytes = ledger_.heap().reserved_bytes();
  const policy::GrowthNeed need{.wanted_bytes = wanted_bytes,
                                .room_bytes = unmapped->size_bytes,
                                .reserved_bytes = reserved_bytes,
                                .spare_bytes = limits_.SpareBytes(reserved_bytes),
                                .page_bytes = unmapped->segment->page_bytes,
                                .is_small = unmapped->is_small};
  const policy::GrowthSize least = policy::LeastGrowth(need);
  const policy::GrowthSize size = strategy_.SizeOf(need);
  GrowthResult mapped = Map(unmapped, size);
  return mapped.refusal == Refusal::kOutOfMemory && size.page_bytes > least.page_bytes ? Map(unmapped, least) : mapped;
}

GrowthResult DeviceGrowth::Map(policy::Block* unmapped, const policy::GrowthSize& size) {
  const absl::Status status = device_.Map(unmapped->address, size.size_bytes, size.page_bytes);
  if (!status.ok()) return Failed(status, size.size_bytes);
  return {.block = ledger_.MarkMapped(unmapped, size.size_bytes, size.page_bytes)};
}

// 9/8 of the device's memory, so that pages unmapped early can be mapped again at the end; whole pages.
std::uint64_t DeviceGrowth::ReservationBytes(std::uint64_t page_bytes) const {
  const std::uint64_t total_bytes = limits_.total_bytes();
  std::uint64_t bytes = total_bytes + total_bytes / 8;
  const policy::ExpandableReserve& reserve = ledger_.options().expandable_reserve;
  if (reserve.bytes.has_value()) bytes = std::min(bytes, *reserve.bytes);
  if (reserve.fraction_of_total.has_value()) {
    const double wanted = *reserve.fraction_of_total * static_cast<double>(total_bytes);
    if (wanted < static_cast<double>(bytes)) bytes = static_cast<std::uint64_t>(wanted);
  }
  return RoundUp(std::max<std::uint64_t>(bytes, 1), page_bytes);
}

GrowthResult DeviceGrowth::NewReservation(const policy::Decision& decision) {
  const std::uint64_t page_bytes = strategy_.PageBytes(decision.pool->is_small, ledger_.options());
  const std::uint64_t size_bytes = ReservationBytes(page_bytes);
  const absl::StatusOr<std::uint64_t> address = device_.Reserve(size_bytes);
  if (!address.ok()) return Failed(address.status(), size_bytes);
  if (size_bytes < decision.rounded_bytes && !strategy_.KeepsShortReservations(ledger_.options())) {
    errors_.Note(device_.ReleaseReservation(*address));
    return {.refusal = Refusal::kOutOfMemory};
  }
  return {.block = ledger_.AddReservation(decision, *address, size_bytes, page_bytes)};
}

namespace {

bool IsAsleep(const policy::Block& block) { return block.segment->lane->pool->pair->is_asleep; }

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

bool DeviceRelease::Oversize(const policy::Decision& decision) {
  const policy::Heap::OversizeVictims victims = ledger_.heap().FindOversizeVictims(decision);
  for (policy::Block* block : victims.blocks) errors_.Note(Segment(block));
  return victims.enough;
}

bool DeviceRelease::PagesFor(const policy::Decision& decision, std::uint64_t spare_bytes) {
  const policy::GrowthPlace place = policy::FindLeastGrowth(decision);
  const std::uint64_t wanted = place.map_bytes - std::min(place.map_bytes, spare_bytes);
  if (no_pages_ == Now()) return false;
  ++searches_;
  const std::vector<policy::FreePages> found = policy::PagesToMove(ledger_.heap(), decision, place, wanted);
  // Free blocks where the growth begins are passed over, and private pools open without a free.
  const bool begins_alone = place.start == nullptr || !place.start->IsSplit();
  const bool is_all = begins_alone && wanted > 0 && ledger_.heap().private_pairs().empty();
  if (found.empty() && is_all) no_pages_ = Now();
  std::uint64_t bytes = 0;
  std::set<std::uint64_t> streams;
  for (const policy::FreePages& free : found) {
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
  for (const policy::FreePages& free : found) errors_.Note(Unmap(free.block, free.runs));
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
    it = it->second->MayReturn() ? PrivatePair(it, in_use, status) : std::next(it);
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
  status.Update(FreeOf(pair));
  if (&pair == in_use) return std::next(at);
  for (const policy::Pool* pool : {&pair.small, &pair.large}) {
    for (policy::Block* reservation : EmptyReservations(*pool)) status.Update(Reservation(reservation));
  }
  const bool is_empty = pair.small.segment_count + pair.large.segment_count == 0;
  if (!is_empty || pair.use_count > 0 || pair.is_asleep) return std::next(at);
  return ledger_.heap().private_pairs().erase(at);
}

absl::Status DeviceRelease::FreeBlocksOf(const policy::Pool& pool) {
  ++searches_;
  const std::vector<policy::Block*> expandable = policy::Heap::FreeExpandable(pool);
  absl::Status status;
  for (policy::Block* block : ledger_.heap().WholeFree(pool)) status.Update(Segment(block));
  for (policy::Block* block : expandable) status.Update(Pages(block));
  return status;
}

absl::Status DeviceRelease::FreeOf(const policy::PoolPair& pair) {
  absl::Status status = FreeBlocksOf(pair.small);
  status.Update(FreeBlocksOf(pair.large));
  return status;
}

absl::Status DeviceRelease::Segment(policy::Block* whole) {
  PoolMemory* const memory = whole->segment->lane->pool->pair->memory.get();
  absl::Status status;
  if (memory == nullptr) {
    status = device_.FreeSegment(whole->segment->address);
  } else {
    memory->Free(whole->segment->address);
  }
  ledger_.RemoveSegment(whole);
  return status;
}

absl::Status DeviceRelease::Pages(policy::Block* block) {
  const std::vector<policy::PageRun> runs = ledger_.heap().PagesToReturn(block);
  if (runs.empty()) return absl::OkStatus();
  if (IsAsleep(*block)) return Unmap(block, runs);
  if (absl::Status status = device_.SynchronizeStream(block->segment->lane->stream); !status.ok()) return status;
  return Unmap(block, runs);
}

// The work of the block's stream is done. Runs by address: after each, `block` is what lies above it. What is asleep
// has no pages, and the addresses alone are told of.
absl::Status DeviceRelease::Unmap(policy::Block* block, const std::vector<policy::PageRun>& runs) {
  absl::Status status;
  const bool is_asleep = IsAsleep(*block);
  for (const policy::PageRun& run : runs) {
    if (!is_asleep) status.Update(device_.Unmap(run.range.address, run.range.size_bytes, run.page_bytes));
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
