// Recomputes the heap's state from its segments and compares it with what is kept.
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "allocator/policy/heap.h"

namespace ashlar::policy {
namespace {

struct LaneCounts {
  std::uint64_t segments = 0;
  std::size_t free = 0;
  std::size_t unmapped = 0;
  SplitCounts split;
};

absl::Status Wrong(const Block& block, absl::string_view what) {
  return absl::InternalError(absl::StrCat("block at ", block.address, " of ", block.size_bytes,
                                          " bytes in the segment at ", block.segment->address, ": ", what));
}

bool IsFreeKind(BlockUse state) { return state == BlockUse::kFree || state == BlockUse::kUnmapped; }

absl::Status CheckBlock(const Segment& segment, const Block& block, const Block* prev, std::uint64_t expected_address) {
  if (block.segment != &segment) return absl::InternalError("a block names another segment");
  if (block.address != expected_address) return Wrong(block, "does not follow its neighbour");
  if (block.prev != prev) return Wrong(block, "its prev is not its neighbour");
  const bool prev_is_free = prev != nullptr && prev->state == BlockUse::kFree;
  const bool next_is_free = block.next != nullptr && block.next->state == BlockUse::kFree;
  if (block.prev_is_free != prev_is_free || block.next_is_free != next_is_free) {
    return Wrong(block, "is wrong about a neighbour");
  }
  if (block.size_bytes == 0) return Wrong(block, "is empty");
  if (prev != nullptr && prev->state == block.state && IsFreeKind(block.state)) return Wrong(block, "did not merge");
  const Lane& lane = *segment.lane;
  if ((block.state == BlockUse::kFree) != lane.free.Contains(&block)) return Wrong(block, "free set disagrees");
  const auto it = lane.unmapped.find(block.address);
  const bool in_unmapped = it != lane.unmapped.end() && it->second == &block;
  if ((block.state == BlockUse::kUnmapped) != in_unmapped) return Wrong(block, "unmapped set disagrees");
  if (block.state == BlockUse::kLive && block.requested_bytes > block.size_bytes) {
    return Wrong(block, "is smaller than its request");
  }
  return absl::OkStatus();
}

absl::Status CheckLane(const Lane& lane, const LaneCounts& counted) {
  if (lane.segment_count != counted.segments) {
    return absl::InternalError(absl::StrCat("stream ", Handle(lane.stream), " keeps ", lane.segment_count,
                                            " segments, counted as ", counted.segments));
  }
  if (lane.free.size() != counted.free || lane.unmapped.size() != counted.unmapped) {
    return absl::InternalError("a free or unmapped set holds a block that is in no segment");
  }
  const SplitCounts& kept = lane.inactive_split;
  if (counted.split.blocks == kept.blocks && counted.split.bytes == kept.bytes) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("inactive split is kept as ", kept.blocks, " blocks, ", kept.bytes,
                                          " bytes, counted as ", counted.split.blocks, ", ", counted.split.bytes));
}

}  // namespace

absl::Status Heap::Validate() const {
  std::uint64_t reserved = 0;
  std::map<const Lane*, LaneCounts> lanes;
  std::uint64_t last_end = 0;
  for (const auto& [address, segment] : segments_) {
    if (address < last_end) return absl::InternalError(absl::StrCat("the segment at ", address, " overlaps"));
    last_end = address + segment->size_bytes;
    std::uint64_t at = address;
    const Block* prev = nullptr;
    ++lanes[segment->lane].segments;
    for (const Block* block = segment->first; block != nullptr; block = block->next) {
      if (absl::Status status = CheckBlock(*segment, *block, prev, at); !status.ok()) return status;
      at = block->End();
      prev = block;
      LaneCounts& counts = lanes[segment->lane];
      counts.unmapped += block->state == BlockUse::kUnmapped;
      counts.free += block->state == BlockUse::kFree;
      const bool is_there = block->state != BlockUse::kUnmapped && !segment->lane->pool->pair->is_asleep;
      if (is_there) reserved += block->size_bytes;
      if (block->state == BlockUse::kFree && block->IsSplit() && !segment->is_expandable) {
        ++counts.split.blocks;
        counts.split.bytes += static_cast<std::int64_t>(block->size_bytes);
      }
    }
    if (at != last_end) {
      return absl::InternalError(absl::StrCat("the blocks of the segment at ", address, " end early"));
    }
  }
  if (reserved != reserved_bytes_) {
    return absl::InternalError(absl::StrCat("reserved is kept as ", reserved_bytes_, ", counted as ", reserved));
  }
  absl::Status status;
  ForEachPool([&](const Pool& pool) {
    for (const auto& [stream, lane] : pool.lanes) status.Update(CheckLane(lane, lanes[&lane]));
  });
  return status;
}

}  // namespace ashlar::policy
