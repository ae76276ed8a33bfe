#include "tests/analyzer/timeline/model_allocator.h"

#include <algorithm>
#include <utility>

namespace ashlar::timeline {
namespace {

constexpr std::uint64_t kSmallPage = 2 * kMiB;
constexpr std::uint64_t kLargePage = 20 * kMiB;
constexpr std::uint64_t kReservationPages = 8;

std::uint64_t RoundedRequest(std::uint64_t bytes) { return std::max<std::uint64_t>((bytes + 511) / 512, 1) * 512; }

bool AreBothFree(const Chunk& a, const Chunk& b) {
  return a.kind == b.kind && (a.kind == ChunkKind::kFree || a.kind == ChunkKind::kUnmapped);
}

void MergeFree(Region& region) {
  std::vector<Chunk> merged;
  for (const Chunk& chunk : region.chunks) {
    if (chunk.size_bytes == 0) continue;
    if (!merged.empty() && AreBothFree(merged.back(), chunk)) {
      merged.back().size_bytes += chunk.size_bytes;
    } else {
      merged.push_back(chunk);
    }
  }
  region.chunks = std::move(merged);
}

// Makes [address, address + size_bytes), which lies in one chunk, a chunk of its own of another kind.
void Carve(Region& region, std::uint64_t address, std::uint64_t size_bytes, ChunkKind kind) {
  std::vector<Chunk> cut;
  for (const Chunk& chunk : region.chunks) {
    const std::uint64_t end = chunk.address + chunk.size_bytes;
    if (address < chunk.address || address >= end) {
      cut.push_back(chunk);
      continue;
    }
    cut.push_back({chunk.address, address - chunk.address, 0, chunk.kind});
    cut.push_back({address, size_bytes, 0, kind});
    cut.push_back({address + size_bytes, end - address - size_bytes, 0, chunk.kind});
  }
  region.chunks = std::move(cut);
  MergeFree(region);
}

trace::BlockState StateOf(ChunkKind kind) {
  if (kind == ChunkKind::kLive) return trace::BlockState::kLive;
  return kind == ChunkKind::kPending ? trace::BlockState::kPending : trace::BlockState::kFree;
}

}  // namespace

void ModelAllocator::Emit(trace::Action action, std::uint64_t address, std::uint64_t size_bytes, Stream stream) {
  trace::Event event;
  event.action = action;
  event.address = address;
  event.size_bytes = size_bytes;
  event.stream = stream;
  events_.push_back(event);
  states_.push_back(Now());
}

std::vector<trace::SnapshotSegment> ModelAllocator::Now() const {
  std::vector<trace::SnapshotSegment> segments;
  for (const Region& region : regions_) {
    bool is_open = false;
    for (const Chunk& chunk : region.chunks) {
      if (chunk.kind == ChunkKind::kUnmapped) {
        is_open = false;
        continue;
      }
      if (!is_open) {
        trace::SnapshotSegment segment;
        segment.address = chunk.address;
        segment.stream = region.stream;
        segment.is_small_pool = region.is_small;
        segment.is_expandable = region.is_expandable;
        segment.pool = region.pool;
        segments.push_back(segment);
        is_open = true;
      }
      trace::SnapshotBlock block;
      block.address = chunk.address;
      block.size_bytes = chunk.size_bytes;
      block.requested_bytes = chunk.requested_bytes;
      block.state = StateOf(chunk.kind);
      segments.back().blocks.push_back(block);
      segments.back().size_bytes += chunk.size_bytes;
    }
  }
  std::sort(segments.begin(), segments.end(), [](const auto& a, const auto& b) { return a.address < b.address; });
  return segments;
}

std::vector<std::pair<std::size_t, std::size_t>> ModelAllocator::ChunksOf(ChunkKind kind) const {
  std::vector<std::pair<std::size_t, std::size_t>> found;
  for (std::size_t r = 0; r < regions_.size(); ++r) {
    for (std::size_t c = 0; c < regions_[r].chunks.size(); ++c) {
      if (regions_[r].chunks[c].kind == kind) found.push_back({r, c});
    }
  }
  return found;
}

void ModelAllocator::Act() {
  switch (rng_.Below(16)) {
    case 0:
      return ReleaseRegion();
    case 1:
      return UnmapPages();
    case 2:
      return Emit(rng_.Below(2) == 0 ? trace::Action::kOom : trace::Action::kSnapshot, 12345, 678, Stream{9});
    case 3:
    case 4:
    case 5:
      return CompleteFree();
    case 6:
    case 7:
    case 8:
    case 9:
      return RequestFree();
    default:
      return Allocate();
  }
}

void ModelAllocator::Allocate() {
  constexpr std::uint64_t kScales[] = {4096, kMiB, 4 * kMiB, 12 * kMiB, 40 * kMiB};
  const std::uint64_t requested_bytes = 1 + rng_.Below(kScales[rng_.Below(5)]);
  const Stream stream{rng_.Below(2)};
  if (rng_.Below(8) != 0 && TryPlace(requested_bytes, stream)) return;
  Grow(RoundedRequest(requested_bytes), stream);
  TryPlace(requested_bytes, stream);
}

bool ModelAllocator::TryPlace(std::uint64_t requested_bytes, Stream stream) {
  const std::uint64_t rounded_bytes = RoundedRequest(requested_bytes);
  const auto free = ChunksOf(ChunkKind::kFree);
  const std::size_t offset = free.empty() ? 0 : rng_.Below(free.size());
  for (std::size_t i = 0; i < free.size(); ++i) {
    const auto [r, c] = free[(i + offset) % free.size()];
    Region& region = regions_[r];
    const Chunk chunk = region.chunks[c];
    if (region.stream != stream || region.is_small != (rounded_bytes <= kMiB)) continue;
    if (chunk.size_bytes < rounded_bytes) continue;
    if (rounded_bytes < options_.max_split_size_bytes && chunk.size_bytes >= options_.max_split_size_bytes) continue;
    const std::uint64_t rest = chunk.size_bytes - rounded_bytes;
    bool is_split = rounded_bytes < options_.max_split_size_bytes && rest > kMiB;
    if (region.is_small || options_.expandable_option || region.is_expandable) is_split = rest >= 512;
    const std::uint64_t size_bytes = is_split ? rounded_bytes : chunk.size_bytes;
    Carve(region, chunk.address, size_bytes, ChunkKind::kLive);
    for (Chunk& made : region.chunks) {
      if (made.address == chunk.address) made.requested_bytes = requested_bytes;
    }
    Emit(trace::Action::kAlloc, chunk.address, requested_bytes, stream);
    return true;
  }
  return false;
}

void ModelAllocator::Grow(std::uint64_t rounded_bytes, Stream stream) {
  const bool is_small = rounded_bytes <= kMiB;
  const std::uint64_t page = is_small ? kSmallPage : kLargePage;
  if (options_.expandable_option && rng_.Below(4) != 0) {
    for (Region& region : regions_) {
      if (region.is_expandable && region.stream == stream && region.is_small == is_small && rng_.Below(3) != 0) {
        return MapPages(region, rounded_bytes);
      }
    }
    const std::uint64_t base = (rng_.Below(4096) + 4096) * kGiB;
    if (std::any_of(regions_.begin(), regions_.end(), [&](const Region& r) { return r.chunks[0].address == base; }))
      return;
    regions_.push_back({stream, {}, is_small, true, {{base, page * kReservationPages, 0, ChunkKind::kUnmapped}}});
    return MapPages(regions_.back(), rounded_bytes);
  }
  const std::uint64_t size_bytes =
      rounded_bytes < 10 * kMiB ? page : (rounded_bytes + 2 * kMiB - 1) / (2 * kMiB) * 2 * kMiB;
  // Few places, so that addresses are used again; neighbours may touch.
  const std::uint64_t base = kGiB + rng_.Below(24) * 20 * kMiB;
  for (const trace::SnapshotSegment& segment : Now()) {
    if (base < segment.address + segment.size_bytes && segment.address < base + size_bytes) return;
  }
  const PoolId pool{0, rng_.Below(3)};
  regions_.push_back({stream, pool, is_small, false, {{base, size_bytes, 0, ChunkKind::kFree}}});
  Emit(trace::Action::kSegmentAlloc, base, size_bytes, stream);
}

void ModelAllocator::MapPages(Region& region, std::uint64_t rounded_bytes) {
  const std::uint64_t page = region.is_small ? kSmallPage : kLargePage;
  std::vector<Chunk> holes;
  std::copy_if(region.chunks.begin(), region.chunks.end(), std::back_inserter(holes),
               [](const Chunk& chunk) { return chunk.kind == ChunkKind::kUnmapped; });
  if (holes.empty()) return;
  const Chunk hole = holes[rng_.Below(holes.size())];
  const std::uint64_t pages = std::min((rounded_bytes + page - 1) / page, hole.size_bytes / page);
  Carve(region, hole.address, pages * page, ChunkKind::kFree);
  Emit(trace::Action::kSegmentMap, hole.address, pages * page, region.stream);
}

void ModelAllocator::RequestFree() {
  const auto live = ChunksOf(ChunkKind::kLive);
  if (live.empty()) return;
  const auto [r, c] = live[rng_.Below(live.size())];
  Chunk& chunk = regions_[r].chunks[c];
  chunk.kind = ChunkKind::kPending;
  Emit(trace::Action::kFreeRequested, chunk.address, chunk.requested_bytes, regions_[r].stream);
  if (rng_.Below(4) == 0) return;
  const std::uint64_t requested_bytes = chunk.requested_bytes, address = chunk.address;
  chunk.kind = ChunkKind::kFree;
  MergeFree(regions_[r]);
  Emit(trace::Action::kFreeCompleted, address, requested_bytes, regions_[r].stream);
}

void ModelAllocator::CompleteFree() {
  const auto pending = ChunksOf(ChunkKind::kPending);
  if (pending.empty()) return;
  const auto [r, c] = pending[rng_.Below(pending.size())];
  const Chunk chunk = regions_[r].chunks[c];
  regions_[r].chunks[c].kind = ChunkKind::kFree;
  MergeFree(regions_[r]);
  Emit(trace::Action::kFreeCompleted, chunk.address, chunk.requested_bytes, regions_[r].stream);
}

void ModelAllocator::ReleaseRegion() {
  for (std::size_t r = 0; r < regions_.size(); ++r) {
    const Region region = regions_[r];
    if (region.is_expandable || region.chunks.size() != 1 || region.chunks[0].kind != ChunkKind::kFree) continue;
    regions_.erase(regions_.begin() + static_cast<std::ptrdiff_t>(r));
    return Emit(trace::Action::kSegmentFree, region.chunks[0].address, region.chunks[0].size_bytes, region.stream);
  }
}

// The whole pages inside one free chunk.
void ModelAllocator::UnmapPages() {
  for (Region& region : regions_) {
    if (!region.is_expandable) continue;
    const std::uint64_t base = region.chunks[0].address;
    const std::uint64_t page = region.is_small ? kSmallPage : kLargePage;
    for (const Chunk& chunk : region.chunks) {
      const std::uint64_t from = (chunk.address - base + page - 1) / page * page;
      const std::uint64_t to = (chunk.address + chunk.size_bytes - base) / page * page;
      if (chunk.kind != ChunkKind::kFree || from >= to || rng_.Below(2) == 0) continue;
      Carve(region, base + from, to - from, ChunkKind::kUnmapped);
      return Emit(trace::Action::kSegmentUnmap, base + from, to - from, region.stream);
    }
  }
}

}  // namespace ashlar::timeline
