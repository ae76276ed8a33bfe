#include "allocator/core/accounting.h"

#include <vector>

#include "allocator/base/check.h"

namespace ashlar::core {

void AccountingSum::AddBlock(const AccountedBlock& block) {
  if (block.state == trace::BlockState::kPending) {
    result_.pending_bytes += block.size_bytes;
    return;
  }
  result_.allocated_bytes += block.size_bytes;
  if (!block.requested_bytes.has_value()) {
    result_.live_bytes.reset();
    result_.rounding_bytes.reset();
  }
  if (!result_.live_bytes.has_value()) return;
  *result_.live_bytes += *block.requested_bytes;
  *result_.rounding_bytes += block.size_bytes - *block.requested_bytes;
}

void AccountingSum::AddSegment(std::uint64_t size_bytes, PoolId pool, absl::Span<const AccountedBlock> occupied) {
  std::uint64_t occupied_bytes = 0;
  for (const AccountedBlock& block : occupied) {
    AddBlock(block);
    occupied_bytes += block.size_bytes;
  }
  ASHLAR_CHECK_LE(occupied_bytes, size_bytes);
  const std::uint64_t hole_bytes = size_bytes - occupied_bytes;
  result_.reserved_bytes += size_bytes;
  ++result_.segment_count;
  if (!pool.IsDefault()) {
    result_.private_pool_bytes += hole_bytes;
  } else if (occupied.empty()) {
    result_.whole_free_bytes += hole_bytes;
  } else if (hole_bytes > 0) {
    result_.stranded_bytes += hole_bytes;
    ++result_.stranded_segment_count;
    result_.pinning_block_count += occupied.size();
  }
}

Accounting Account(absl::Span<const trace::SnapshotSegment> segments) {
  AccountingSum sum;
  std::vector<AccountedBlock> occupied;
  for (const trace::SnapshotSegment& segment : segments) {
    occupied.clear();
    for (const trace::SnapshotBlock& block : segment.blocks) {
      if (block.state == trace::BlockState::kFree) continue;
      occupied.push_back({block.size_bytes, block.requested_bytes, block.state});
    }
    sum.AddSegment(segment.size_bytes, segment.pool, occupied);
  }
  return sum.result();
}

namespace {

__extension__ using Wide = unsigned __int128;

// The lower block's share of a hole between two blocks: inverse to the sizes, so in proportion to the other's.
std::uint64_t LowerShare(std::uint64_t hole_bytes, std::uint64_t lower_bytes, std::uint64_t upper_bytes) {
  const Wide both = Wide{lower_bytes} + upper_bytes;
  return both == 0 ? hole_bytes / 2 : static_cast<std::uint64_t>(Wide{hole_bytes} * upper_bytes / both);
}

}  // namespace

std::vector<std::uint64_t> BlameOfBlocks(std::uint64_t begin, std::uint64_t end, absl::Span<const Occupied> blocks) {
  std::vector<std::uint64_t> blame(blocks.size(), 0);
  if (blocks.empty()) return blame;
  blame.front() += blocks.front().address - begin;
  for (std::size_t i = 1; i < blocks.size(); ++i) {
    const std::uint64_t hole = blocks[i].address - blocks[i - 1].End();
    const std::uint64_t lower = LowerShare(hole, blocks[i - 1].size_bytes, blocks[i].size_bytes);
    blame[i - 1] += lower;
    blame[i] += hole - lower;
  }
  blame.back() += end - blocks.back().End();
  return blame;
}

}  // namespace ashlar::core
