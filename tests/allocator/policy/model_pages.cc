// The model's own policy: memory grows where the fewest bytes are to be mapped, and whole free pages move there before
// a request fails. Written from docs/internals/policy.md, page by page.
#include <algorithm>

#include "tests/allocator/policy/model.h"

namespace ashlar::model {
namespace {

constexpr std::uint64_t kPage = 2 * kMiB;

bool IsOpen(const Block& block) { return block.state == State::kFree || block.state == State::kUnmapped; }

}  // namespace

// From every block on: the bytes that would have to be mapped so that the request fits there.
Model::GrowthPlace Model::FindLeastGrowth(const Need& need) {
  GrowthPlace least{nullptr, Up(need.size, kPage)};
  for (auto& [address, start] : blocks_) {
    const Segment& segment = SegmentOf(start);
    if (segment.pool != need.pool || segment.stream != need.stream) continue;
    std::uint64_t bytes = 0;
    std::uint64_t unmapped = 0;
    for (Block* at = &start; at != nullptr && IsOpen(*at) && bytes < need.size; at = Next(*at)) {
      const std::uint64_t used = std::min(at->size, need.size - bytes);
      if (at->state == State::kUnmapped) unmapped += Up(used, kPage);
      bytes += at->size;
    }
    if (bytes < need.size || unmapped == 0) continue;
    if (least.start == nullptr || unmapped < least.map_bytes) least = {&start, unmapped};
  }
  return least;
}

std::uint64_t Model::GrowthBytes(const Need& need) { return IsOurs() ? FindLeastGrowth(need).map_bytes : need.segment; }

std::uint64_t Model::Spare() const {
  const std::uint64_t reserved = static_cast<std::uint64_t>(stats_.reserved_bytes.current[0]);
  const std::uint64_t most = std::min(device_.capacity_bytes, limit_.value_or(device_.capacity_bytes));
  return most > reserved ? most - reserved : 0;
}

// The largest power of two that no bound forbids.
std::uint64_t Model::PageFor(const Segment& segment, std::uint64_t wanted, std::uint64_t room) const {
  const std::uint64_t reserved = static_cast<std::uint64_t>(stats_.reserved_bytes.current[0]);
  const std::uint64_t spare = Spare();
  const std::uint64_t share = segment.pool.is_small ? 16 : 1;
  std::uint64_t page = kPage;
  for (std::uint64_t larger = 2 * kPage; larger <= 64 * kMiB; larger *= 2) {
    const bool fits_size = larger <= wanted || larger * 16 * share <= reserved;
    if (fits_size && larger * 512 * share <= spare && larger <= room) page = larger;
  }
  return page;
}

std::vector<std::uint64_t> Model::PagesIn(const Block& block) const {
  std::vector<std::uint64_t> out;
  for (const auto& [address, size] : pages_) {
    if (address >= block.address && address + size <= block.address + block.size) out.push_back(address);
  }
  return out;
}

// Neighbouring pages of one size are returned by one call.
void Model::UnmapEach(const std::vector<std::uint64_t>& pages) {
  for (std::size_t i = 0; i < pages.size();) {
    const std::uint64_t begin = pages[i];
    const std::uint64_t size = pages_.at(begin);
    std::uint64_t end = begin;
    for (; i < pages.size() && pages[i] == end && pages_.at(end) == size; ++i) end += size;
    for (std::uint64_t at = begin; at < end; at += size) pages_.erase(at);
    UnmapRange(begin, end);
  }
}

// Of the request's own stream and pool first, then of its stream, then of the others; the largest blocks first, and of
// a block the highest pages.
bool Model::MovePages(const Need& need, std::uint64_t spare) {
  const GrowthPlace place = FindLeastGrowth(need);
  if (spare >= place.map_bytes) return false;
  const std::uint64_t missing = place.map_bytes - spare;
  std::set<std::uint64_t> kept;
  std::uint64_t bytes = 0;
  for (Block* at = place.start; at != nullptr && bytes < need.size; at = Next(*at)) {
    kept.insert(at->address);
    bytes += at->size;
  }
  std::vector<PoolKey> pools = {{PoolId{}, true}, {PoolId{}, false}};
  for (const auto& [id, pool] : private_pools_) {
    if (pool.users > 0) continue;
    pools.push_back({id, true});
    pools.push_back({id, false});
  }
  std::set<std::uint64_t> streams;
  for (const auto& [address, segment] : segments_) streams.insert(segment.stream);
  std::vector<std::pair<PoolKey, std::uint64_t>> lanes;
  const auto is_own = [&](const PoolKey& pool, std::uint64_t stream) {
    return pool == need.pool && stream == need.stream;
  };
  for (const PoolKey& pool : pools) {
    if (is_own(pool, need.stream)) lanes.emplace_back(pool, need.stream);
  }
  for (const PoolKey& pool : pools) {
    if (!is_own(pool, need.stream)) lanes.emplace_back(pool, need.stream);
  }
  for (const PoolKey& pool : pools) {
    for (const std::uint64_t stream : streams) {
      if (stream != need.stream) lanes.emplace_back(pool, stream);
    }
  }
  std::uint64_t found = 0;
  std::vector<std::vector<std::uint64_t>> moved;  // the pages of each block
  std::set<std::uint64_t> waited;
  for (const auto& [pool, stream] : lanes) {
    std::vector<Block*> free = FreeBlocksOf(pool, stream);
    for (auto it = free.rbegin(); it != free.rend() && found < missing; ++it) {
      if (kept.contains((*it)->address)) continue;
      const std::vector<std::uint64_t> all = PagesIn(**it);
      std::vector<std::uint64_t> taken;
      for (auto page = all.rbegin(); page != all.rend() && found < missing; ++page) {
        taken.insert(taken.begin(), *page);
        found += pages_.at(*page);
      }
      if (taken.empty()) continue;
      moved.push_back(taken);
      waited.insert(stream);
    }
  }
  if (found < missing) return false;
  for (const std::uint64_t stream : waited) MarkDone(stream, sequence_);
  for (const std::vector<std::uint64_t>& pages : moved) UnmapEach(pages);
  return true;
}

Model::Answer Model::GrowByRepair(const Need& need, Block** out) {
  if (MovePages(need, Spare())) {
    ++stats_.retries;
    const Answer answer = NewSegment(need, out);
    if (answer != Answer::kOutOfMemory) return answer;
  }
  if (!MovePages(need, 0)) return Answer::kOutOfMemory;
  ++stats_.retries;
  return NewSegment(need, out);
}

Model::Answer Model::GrowAfterRepair(const Need& need, Block** out) {
  Answer answer = GrowByRepair(need, out);
  if (answer != Answer::kOutOfMemory) return answer;
  if (options_.sync_just_enough) return GrowAfterFewWaits(need, out);
  ProcessEvents(true);
  ++stats_.sync_all;
  if (Block* found = FindAfterWaiting(need); found != nullptr) {
    *out = found;
    return Answer::kOk;
  }
  answer = GrowByRepair(need, out);
  if (answer != Answer::kOutOfMemory) return answer;
  ReturnCached(need.pool.id);
  ++stats_.retries;
  return NewSegment(need, out);
}

}  // namespace ashlar::model
