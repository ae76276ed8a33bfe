#include "analyzer/timeline/occupancy.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "allocator/base/check.h"
#include "allocator/base/torch_sizes.h"

namespace ashlar::timeline {

std::string FormatAddress(std::uint64_t address) { return absl::StrCat("0x", absl::Hex(address)); }

absl::Status Disagreement(int device, std::int64_t event_index, const trace::Event& event, absl::string_view what) {
  const std::string byte = event.file_byte == trace::kNoByte ? "" : absl::StrCat(" at byte ", event.file_byte);
  return absl::FailedPreconditionError(absl::StrCat("device ", device, ", event ", event_index, byte, " (",
                                                    trace::ActionName(event.action), " of ", event.size_bytes, " B at ",
                                                    FormatAddress(event.address), "): ", what));
}

namespace {

// The entry of `map` with the greatest key <= address, or end().
template <typename Map>
typename Map::const_iterator AtOrBelow(const Map& map, std::uint64_t address) {
  auto it = map.upper_bound(address);
  return it == map.begin() ? map.end() : std::prev(it);
}

std::string Describe(const OccupiedBlock& block) {
  return absl::StrCat("a ", block.is_pending ? "pending" : "live", " block [", FormatAddress(block.address), ", ",
                      FormatAddress(block.End()), ")");
}

std::string Describe(const SegmentRange& segment) {
  return absl::StrCat(segment.is_expandable ? "the mapped range [" : "the segment [", FormatAddress(segment.address),
                      ", ", FormatAddress(segment.End()), ")");
}

}  // namespace

const SegmentRange* Occupancy::SegmentAround(std::uint64_t address) const {
  const SegmentRange* const last = last_found_.range;
  if (last != nullptr && address >= last->address && address < last->End()) return last;
  const auto it = AtOrBelow(segments_, address);
  if (it == segments_.end() || address >= it->second.End()) return nullptr;
  return last_found_.range = &it->second;
}

SegmentRange* Occupancy::SegmentAround(std::uint64_t address) {
  return const_cast<SegmentRange*>(static_cast<const Occupancy*>(this)->SegmentAround(address));
}

const SegmentRange* Occupancy::SegmentStartingAt(std::uint64_t address) const {
  const auto it = segments_.find(address);
  return it == segments_.end() ? nullptr : &it->second;
}

const SegmentRange* Occupancy::SegmentEndingAt(std::uint64_t address) const {
  if (address == 0) return nullptr;
  const SegmentRange* segment = SegmentAround(address - 1);
  return segment != nullptr && segment->End() == address ? segment : nullptr;
}

OccupiedBlock* Occupancy::BlockAt(std::uint64_t address) {
  const auto it = blocks_.find(address);
  return it == blocks_.end() ? nullptr : &it->second;
}

const OccupiedBlock* Occupancy::BlockBelow(std::uint64_t address) const {
  const SegmentRange* segment = SegmentAround(address);
  if (segment == nullptr || address == 0) return nullptr;
  const auto it = AtOrBelow(blocks_, address - 1);
  return it != blocks_.end() && it->first >= segment->address ? &it->second : nullptr;
}

std::uint64_t Occupancy::GapEnd(std::uint64_t address) const {
  const SegmentRange* segment = SegmentAround(address);
  ASHLAR_CHECK(segment != nullptr);
  const auto next = blocks_.upper_bound(address);
  return next == blocks_.end() ? segment->End() : std::min(segment->End(), next->first);
}

absl::Status Occupancy::CheckUnoccupied(std::uint64_t address, std::uint64_t end) const {
  auto it = AtOrBelow(blocks_, address);
  if (it == blocks_.end() || it->second.End() <= address) it = blocks_.upper_bound(address);
  if (it == blocks_.end() || it->first >= end) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("expected [", FormatAddress(address), ", ", FormatAddress(end),
                                                    ") to be free, found ", Describe(it->second)));
}

absl::Status Occupancy::AddBlock(const OccupiedBlock& block) {
  const SegmentRange* segment = SegmentAround(block.address);
  if (segment == nullptr) return absl::FailedPreconditionError("expected a segment around it, found none");
  if (block.size_bytes > segment->End() - block.address) {
    return absl::FailedPreconditionError(absl::StrCat("expected ", block.size_bytes, " B inside ", Describe(*segment),
                                                      ", found ", segment->End() - block.address, " B to its end"));
  }
  const auto above = blocks_.lower_bound(block.address);
  const bool is_free_above = above == blocks_.end() || above->first >= block.End();
  const bool is_free_below = above == blocks_.begin() || std::prev(above)->second.End() <= block.address;
  if (!is_free_above || !is_free_below) return CheckUnoccupied(block.address, block.End());
  blocks_.insert(above, {block.address, block});
  return absl::OkStatus();
}

void Occupancy::RemoveBlock(std::uint64_t address) {
  const std::size_t count = blocks_.erase(address);
  ASHLAR_CHECK_EQ(count, 1u);
}

void Occupancy::ResizeBlock(std::uint64_t address, std::uint64_t size_bytes) {
  OccupiedBlock* block = BlockAt(address);
  ASHLAR_CHECK(block != nullptr);
  ASHLAR_CHECK_LE(size_bytes, GapEnd(address) - address);
  block->size_bytes = size_bytes;
}

absl::Status Occupancy::AddSegment(const SegmentRange& segment) {
  if (segment.size_bytes == 0 || segment.End() < segment.address) {
    return absl::FailedPreconditionError("expected a segment of a size above 0 inside the address space");
  }
  auto it = AtOrBelow(segments_, segment.address);
  if (it == segments_.end() || it->second.End() <= segment.address) it = segments_.upper_bound(segment.address);
  if (it != segments_.end() && it->first < segment.End()) {
    return absl::FailedPreconditionError(absl::StrCat("expected no segment in [", FormatAddress(segment.address), ", ",
                                                      FormatAddress(segment.End()), "), found ", Describe(it->second)));
  }
  last_found_ = {};
  segments_.insert({segment.address, segment});
  return absl::OkStatus();
}

absl::Status Occupancy::RemoveSegment(std::uint64_t address, std::uint64_t size_bytes) {
  const SegmentRange* segment = SegmentStartingAt(address);
  if (segment == nullptr) return absl::FailedPreconditionError("expected a segment that starts there, found none");
  if (segment->size_bytes != size_bytes || segment->is_expandable) {
    return absl::FailedPreconditionError(
        absl::StrCat("expected a segment of ", size_bytes, " B, found ", Describe(*segment)));
  }
  if (absl::Status status = CheckUnoccupied(address, segment->End()); !status.ok()) return status;
  last_found_ = {};
  segments_.erase(address);
  return absl::OkStatus();
}

absl::Status Occupancy::Map(const SegmentRange& piece, bool joins_left, bool joins_right) {
  if (absl::Status status = AddSegment(piece); !status.ok()) return status;
  SegmentRange joined = piece;
  if (joins_right) {
    const SegmentRange* right = SegmentStartingAt(piece.End());
    ASHLAR_CHECK(right != nullptr && right->is_expandable);
    joined = *right;
    joined.address = piece.address;
    joined.size_bytes += piece.size_bytes;
    segments_.erase(piece.End());
  }
  if (joins_left) {
    const SegmentRange* left = SegmentEndingAt(piece.address);
    ASHLAR_CHECK(left != nullptr && left->is_expandable);
    const std::uint64_t end = joined.End();
    joined = *left;
    joined.size_bytes = end - joined.address;
    segments_.erase(piece.address);
  }
  last_found_ = {};
  segments_[joined.address] = joined;
  return absl::OkStatus();
}

absl::Status Occupancy::Unmap(std::uint64_t address, std::uint64_t size_bytes, std::uint32_t upper_id) {
  const SegmentRange* around = SegmentAround(address);
  if (around == nullptr) return absl::FailedPreconditionError("expected mapped memory, found none");
  const SegmentRange whole = *around;
  if (!whole.is_expandable || size_bytes == 0 || size_bytes > whole.End() - address) {
    return absl::FailedPreconditionError(
        absl::StrCat("expected ", size_bytes, " B inside one mapped range, found ", Describe(whole)));
  }
  const std::uint64_t end = address + size_bytes;
  if (absl::Status status = CheckUnoccupied(address, end); !status.ok()) return status;
  last_found_ = {};
  segments_.erase(whole.address);
  SegmentRange lower = whole, upper = whole;
  lower.size_bytes = address - whole.address;
  upper.address = end;
  upper.size_bytes = whole.End() - end;
  if (lower.size_bytes > 0) upper.id = upper_id;
  if (lower.size_bytes > 0) segments_[lower.address] = lower;
  if (upper.size_bytes > 0) segments_[upper.address] = upper;
  return absl::OkStatus();
}

namespace {

SegmentRange Piece(const trace::Event& event, const EventFacts& facts, std::uint32_t id) {
  return {.address = event.address,
          .size_bytes = event.size_bytes,
          .stream = event.stream,
          .is_small_pool = facts.is_small_pool.value_or(event.size_bytes <= kSmallSegmentBytes),
          .is_expandable = event.action == trace::Action::kSegmentMap,
          .pool = facts.pool.value_or(event.pool.value_or(PoolId{})),
          .stack = event.stack,
          .id = id};
}

bool AreAlike(const SegmentRange* neighbour, const SegmentRange& piece) {
  return neighbour != nullptr && neighbour->is_expandable && neighbour->stream == piece.stream &&
         neighbour->is_small_pool == piece.is_small_pool && neighbour->pool == piece.pool;
}

}  // namespace

bool IsSegmentEvent(trace::Action action) {
  return action == trace::Action::kSegmentAlloc || action == trace::Action::kSegmentFree ||
         action == trace::Action::kSegmentMap || action == trace::Action::kSegmentUnmap;
}

absl::Status ApplySegmentEvent(const trace::Event& event, const EventFacts& facts, std::uint32_t new_id,
                               Occupancy& picture) {
  const SegmentRange piece = Piece(event, facts, new_id);
  switch (event.action) {
    case trace::Action::kSegmentAlloc:
      return picture.AddSegment(piece);
    case trace::Action::kSegmentFree:
      return picture.RemoveSegment(event.address, event.size_bytes);
    case trace::Action::kSegmentMap:
      return picture.Map(piece, facts.joins_left.value_or(AreAlike(picture.SegmentEndingAt(piece.address), piece)),
                         facts.joins_right.value_or(AreAlike(picture.SegmentStartingAt(piece.End()), piece)));
    case trace::Action::kSegmentUnmap:
      return picture.Unmap(event.address, event.size_bytes, new_id);
    default:
      ASHLAR_CHECK(false);
  }
  return absl::OkStatus();
}

}  // namespace ashlar::timeline
