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

}  // namespace ashlar::core
