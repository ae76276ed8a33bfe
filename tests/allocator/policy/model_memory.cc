// What the model takes from the device, and what it gives back.
#include <algorithm>
#include <cstddef>

#include "tests/allocator/policy/model.h"

namespace ashlar::model {
namespace {

constexpr std::uint64_t kGranularity = 2 * kMiB;
constexpr std::uint64_t kBase = 0x7f0000000000;
constexpr std::uint64_t kReservationBase = kBase + (std::uint64_t{1} << 44);

}  // namespace

// ---- new memory ----

Model::Answer Model::NewSegment(const Need& need, Block** out) {
  const std::uint64_t reserved = static_cast<std::uint64_t>(stats_.reserved_bytes.current[0]);
  if (limit_ && reserved + GrowthBytes(need) > *limit_) return Answer::kOutOfMemory;
  if (options_.throw_on_cudamalloc_oom) {
    const double fraction = options_.per_process_memory_fraction.value_or(1.0);
    const auto most = static_cast<std::uint64_t>(fraction * static_cast<double>(device_.capacity_bytes));
    if (reserved + GrowthBytes(need) > most) return Answer::kRejected;
  }
  if (options_.expandable_segments) return Grow(need, out);
  const std::uint64_t charged = Up(need.segment, kGranularity);
  if (used_ + charged > device_.capacity_bytes) return Answer::kOutOfMemory;
  const std::uint64_t address = *TakeRange(false, charged);
  used_ += charged;
  Segment& segment = segments_[address];
  segment.size = need.segment;
  segment.stream = need.stream;
  segment.pool = need.pool;
  segment.number = next_segment_number_++;
  stats_.segment.Change(need.pool.is_small, 1);
  stats_.reserved_bytes.Change(need.pool.is_small, Signed(need.segment));
  ++stats_.device_alloc;
  if (need.segment >= options_.max_split_size_bytes) stats_.oversize_segments.Change(need.pool.is_small, 1);
  Emit(trace::Action::kSegmentAlloc, address, need.segment, need.stream, need.pool.id);
  *out = AddBlock(address, need.segment, address, State::kFree);
  return Answer::kOk;
}

Block* Model::FindGrowth(const Need& need) {
  if (IsOurs()) return FindLeastGrowth(need).start;
  for (auto& [address, unmapped] : blocks_) {
    const Segment& segment = SegmentOf(unmapped);
    if (unmapped.state != State::kUnmapped || segment.pool != need.pool || segment.stream != need.stream) continue;
    Block* start = &unmapped;
    if (Block* previous = Previous(unmapped); previous != nullptr && previous->state == State::kFree) start = previous;
    std::uint64_t sum = 0;
    for (Block* at = start; at != nullptr; at = Next(*at)) {
      if (at->state != State::kFree && at->state != State::kUnmapped) break;
      sum += at->size;
    }
    if (sum >= need.size) return start;
  }
  return nullptr;
}

Block* Model::NewReservation(const Need& need) {
  const std::uint64_t total = device_.capacity_bytes;
  std::uint64_t wanted = total + total / 8;
  const policy::ExpandableReserve& reserve = options_.expandable_reserve;
  if (reserve.fraction_of_total) {
    const double bytes = *reserve.fraction_of_total * static_cast<double>(total);
    if (bytes < static_cast<double>(wanted)) wanted = static_cast<std::uint64_t>(bytes);
  }
  if (reserve.bytes) wanted = std::min(wanted, *reserve.bytes);
  const std::uint64_t page = need.pool.is_small || IsOurs() ? 2 * kMiB : options_.large_segment_bytes;
  const std::uint64_t size = Up(wanted, page);
  if ((IsLate() || IsOurs()) && size < need.size) return nullptr;  // made and freed at once
  const std::uint64_t address = *TakeRange(true, size);
  Segment& segment = segments_[address];
  segment.size = size;
  segment.stream = need.stream;
  segment.pool = need.pool;
  segment.page = page;
  segment.expandable = true;
  segment.number = next_segment_number_++;
  return AddBlock(address, size, address, State::kUnmapped);
}

Model::Answer Model::Grow(const Need& need, Block** out) {
  Block* block = FindGrowth(need);
  if (block == nullptr) block = NewReservation(need);
  if (block == nullptr) return Answer::kOutOfMemory;
  if (block->state == State::kUnmapped) block = MapSome(block, std::min(block->size, need.size));
  while (block != nullptr && block->size < need.size) {
    Block* next = Next(*block);
    if (next == nullptr) return Answer::kOutOfMemory;
    block = MapSome(next, std::min(need.size - block->size, next->size));
  }
  *out = block;
  return block != nullptr ? Answer::kOk : Answer::kOutOfMemory;
}

// Puts memory behind the beginning of an unmapped block; the free block that results, nullptr if out of memory.
Block* Model::MapSome(Block* block, std::uint64_t wanted) {
  const Segment& segment = SegmentOf(*block);
  std::uint64_t page = IsOurs() ? PageFor(segment, wanted, block->size) : segment.page;
  std::uint64_t size = std::min(Up(wanted, page), block->size / page * page);
  if (used_ + size > device_.capacity_bytes) {
    page = segment.page;
    size = Up(wanted, page);
  }
  if (used_ + size > device_.capacity_bytes) return nullptr;
  used_ += size;
  for (std::uint64_t at = 0; IsOurs() && at < size; at += page) pages_[block->address + at] = page;
  if (size < block->size) AddBlock(block->address + size, block->size - size, block->segment, State::kUnmapped);
  block->size = size;
  block->state = State::kFree;
  stats_.reserved_bytes.Change(segment.pool.is_small, Signed(size));
  ++stats_.device_alloc;
  Emit(trace::Action::kSegmentMap, block->address, size, segment.stream, segment.pool.id);
  block = Merge(block, Previous(*block));
  block = Merge(block, Next(*block));
  block->inserted = clocks_[segment.pool];
  return block;
}

// ---- giving back ----

void Model::CollectGarbage() {
  const auto threshold =
      static_cast<std::uint64_t>(options_.garbage_collection_threshold * static_cast<double>(*limit_));
  const std::uint64_t reserved = static_cast<std::uint64_t>(stats_.reserved_bytes.current[0]);
  if (reserved <= threshold) return;
  const std::uint64_t target = reserved - threshold;
  const PoolKey pool{PoolId{}, false};
  std::uint64_t reclaimed = 0;
  bool is_freed = true;
  while (reclaimed < target && is_freed) {
    std::vector<Block*> unsplit = FreeBlocks(pool);
    std::erase_if(unsplit, [&](Block* block) { return IsSplit(*block); });
    if (unsplit.empty()) return;
    std::uint64_t total_age = 0;
    for (const Block* block : unsplit) total_age += clocks_[pool] - block->inserted;
    const double average = static_cast<double>(total_age) / static_cast<double>(unsplit.size());
    is_freed = false;
    for (Block* block : unsplit) {
      if (SegmentOf(*block).expandable) continue;
      if (static_cast<double>(clocks_[pool] - block->inserted) < average) continue;
      reclaimed += block->size;
      ReleaseWhole(block);
      is_freed = true;
    }
  }
}

bool Model::ReleaseAvailable(const Need& need) {
  const std::uint64_t max_split = options_.max_split_size_bytes;
  if (max_split == policy::kUnlimited) return false;
  const std::uint64_t key_size = std::max(need.size, max_split);
  const std::vector<Block*> free = FreeBlocksOf(need.pool, need.stream);
  std::size_t hit = 0;
  while (hit < free.size() && free[hit]->size < key_size) ++hit;
  if (hit < free.size() && !SegmentOf(*free[hit]).expandable) {
    ReleaseWhole(free[hit]);
    return true;
  }
  std::uint64_t released = 0;
  for (std::size_t i = hit; i > 0 && released < key_size; --i) {
    Block* block = free[i - 1];
    if (block->size < max_split) break;
    if (SegmentOf(*block).expandable) continue;
    released += block->size;
    ReleaseWhole(block);
  }
  return released >= key_size;
}

void Model::EmptyCache() {
  if (IsCapturing()) return;
  ProcessEvents(true);
  ++stats_.sync_all;
  ReturnCached(PoolId{});
}

// `in_use`: the pool that a request is under way in.
void Model::ReturnCached(PoolId in_use) {
  ReleasePoolBlocks({PoolId{}, false});
  ReleasePoolBlocks({PoolId{}, true});
  for (const auto& [id, pool] : private_pools_) {
    if (pool.users > 0) continue;
    ReleasePoolBlocks({id, true});
    ReleasePoolBlocks({id, false});
    if (id != in_use) ReleaseEmptyReservations(id);
  }
}

void Model::ReleaseEmptyReservations(PoolId pool) {
  for (auto it = segments_.begin(); it != segments_.end();) {
    const std::uint64_t address = it->first;
    const bool is_empty = it->second.pool.id == pool && it->second.expandable &&
                          blocks_.at(address).state == State::kUnmapped && blocks_.at(address).size == it->second.size;
    ++it;
    if (!is_empty) continue;
    blocks_.erase(address);
    segments_.erase(address);
    taken_[1].erase(address);
  }
}

void Model::ReleasePoolBlocks(const PoolKey& pool) {
  std::vector<Block*> to_unmap;
  for (Block* block : FreeBlocks(pool)) {
    if (SegmentOf(*block).expandable) {
      to_unmap.push_back(block);
    } else if (!IsSplit(*block)) {
      ReleaseWhole(block);
    }
  }
  for (Block* block : to_unmap) UnmapPages(block);
}

void Model::ReleaseWhole(Block* block) {
  const Segment segment = SegmentOf(*block);
  const std::uint64_t address = block->address;
  blocks_.erase(address);
  segments_.erase(address);
  used_ -= taken_[0].at(address);
  taken_[0].erase(address);
  stats_.segment.Change(segment.pool.is_small, -1);
  stats_.reserved_bytes.Change(segment.pool.is_small, -Signed(segment.size));
  ++stats_.device_free;
  if (segment.size >= options_.max_split_size_bytes) stats_.oversize_segments.Change(segment.pool.is_small, -1);
  Emit(trace::Action::kSegmentFree, address, segment.size, segment.stream, segment.pool.id);
}

void Model::UnmapPages(Block* block) {
  if (IsOurs()) {
    const std::vector<std::uint64_t> pages = PagesIn(*block);
    if (pages.empty()) return;
    MarkDone(SegmentOf(*block).stream, sequence_);
    return UnmapEach(pages);
  }
  const std::uint64_t base = block->segment;
  const std::uint64_t page = SegmentOf(*block).page;
  const std::uint64_t begin = base + Up(block->address - base, page);
  const std::uint64_t block_end = block->address + block->size;
  const std::uint64_t end = block_end - (block_end - base) % page;
  if (begin >= end) return;
  MarkDone(SegmentOf(*block).stream, sequence_);  // the stream is waited for
  UnmapRange(begin, end);
}

// Whole pages of one free block.
void Model::UnmapRange(std::uint64_t begin, std::uint64_t end) {
  const Block whole = std::prev(blocks_.upper_bound(begin))->second;
  const Segment segment = SegmentOf(whole);
  const std::uint64_t base = whole.segment;
  const std::uint64_t whole_end = whole.address + whole.size;
  blocks_.erase(whole.address);
  if (whole.address < begin) {
    AddBlock(whole.address, begin - whole.address, base, State::kFree)->inserted = clocks_[segment.pool];
  }
  if (end < whole_end) AddBlock(end, whole_end - end, base, State::kFree)->inserted = clocks_[segment.pool];
  Block* unmapped = AddBlock(begin, end - begin, base, State::kUnmapped);
  unmapped->number = whole.number;
  used_ -= end - begin;
  stats_.reserved_bytes.Change(segment.pool.is_small, -Signed(end - begin));
  ++stats_.device_free;
  Emit(trace::Action::kSegmentUnmap, begin, end - begin, segment.stream, segment.pool.id);
  unmapped = Merge(unmapped, Previous(*unmapped));
  unmapped = Merge(unmapped, Next(*unmapped));
  if (unmapped->size == segment.size) {
    blocks_.erase(base);
    segments_.erase(base);
    taken_[1].erase(base);
  }
}

// ---- the device ----

std::optional<std::uint64_t> Model::TakeRange(bool is_reservation, std::uint64_t size) {
  size = Up(size, kGranularity);
  auto& taken = taken_[is_reservation ? 1 : 0];
  std::uint64_t address = is_reservation ? kReservationBase : kBase;
  if (!is_reservation && device_.descending) {
    std::uint64_t end = kReservationBase;
    for (auto it = taken.rbegin(); it != taken.rend() && it->first + it->second + size > end; ++it) end = it->first;
    address = end - size;
  } else {
    for (const auto& [begin, length] : taken) {
      if (address + size <= begin) break;
      address = begin + length;
    }
  }
  taken[address] = size;
  return address;
}

}  // namespace ashlar::model
