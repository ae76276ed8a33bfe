#include "allocator/plugins/torch_native/segments.h"

#include <algorithm>
#include <map>
#include <type_traits>
#include <utility>

#include "allocator/plugins/torch/failure.h"

namespace ashlar::torch {
namespace {

using c10::cuda::CUDACachingAllocator::BlockInfo;

std::uint64_t AddressOf(const void* memory) { return reinterpret_cast<std::uintptr_t>(memory); }

void VisitWith(void* context, const ashlar_segment* segment) {
  (*static_cast<const std::function<void(const ashlar_segment&)>*>(context))(*segment);
}

BlockInfo BlockInfoOf(const ashlar_segment_block& block, const DeviceHistory& history) {
  BlockInfo out;
  out.size = block.size_bytes;
  out.requested_size = block.requested_bytes;
  out.allocated = block.state == ASHLAR_BLOCK_LIVE;
  out.active = block.state != ASHLAR_BLOCK_FREE;
  if (out.active) out.context_when_allocated = history.OfBlock(AddressOf(block.address));
  return out;
}

SegmentInfo SegmentInfoOf(const ashlar_segment& segment, c10::DeviceIndex device, const DeviceHistory& history) {
  SegmentInfo out;
  out.device = device;
  out.address = AddressOf(segment.address);
  out.total_size = segment.size_bytes;
  out.stream = static_cast<std::remove_reference_t<decltype(out.stream)>>(segment.stream);
  out.is_large = segment.is_small_pool == 0;
  out.is_expandable = segment.is_expandable != 0;
  out.owner_private_pool_id = {segment.pool.first, segment.pool.second};
  out.context_when_allocated = history.OfSegment(out.address);
  for (std::size_t i = 0; i < segment.block_count; ++i) {
    BlockInfo block = BlockInfoOf(segment.blocks[i], history);
    if (block.allocated) out.allocated_size += block.size;
    if (block.active) {
      out.active_size += block.size;
      out.requested_size += block.requested_size;
    }
    out.blocks.push_back(std::move(block));
  }
  return out;
}

}  // namespace

void ForEachSegment(const ashlar_allocator* allocator, const std::function<void(const ashlar_segment&)>& visit) {
  const ashlar_status status =
      ashlar_visit_segments(allocator, VisitWith, const_cast<std::function<void(const ashlar_segment&)>*>(&visit));
  if (status != ASHLAR_OK) ThrowFailure(status, ashlar_device(allocator));
}

std::vector<SegmentInfo> SegmentsOf(const ashlar_allocator* allocator, c10::DeviceIndex device,
                                    const DeviceHistory& history, const c10::MempoolId_t& pool) {
  std::vector<SegmentInfo> out;
  ForEachSegment(allocator, [&](const ashlar_segment& segment) {
    if (IsDefaultPool(pool) || IsOf(segment, pool)) out.push_back(SegmentInfoOf(segment, device, history));
  });
  return out;
}

std::vector<StreamSegmentSize> ExpandableSizesOf(const ashlar_allocator* allocator) {
  std::map<std::pair<void*, bool>, std::size_t> sizes;
  ForEachSegment(allocator, [&](const ashlar_segment& segment) {
    const bool is_counted = segment.is_expandable != 0 && IsOf(segment, {0, 0});
    if (is_counted) sizes[{segment.stream, segment.is_small_pool != 0}] += segment.size_bytes;
  });
  std::vector<StreamSegmentSize> out;
  for (const auto& [of, bytes] : sizes) out.emplace_back(static_cast<cudaStream_t>(of.first), of.second, bytes);
  return out;
}

std::size_t LargestFreeBlock(const ashlar_allocator* allocator, std::size_t least) {
  ForEachSegment(allocator, [&](const ashlar_segment& segment) {
    for (std::size_t i = 0; i < segment.block_count; ++i) {
      const ashlar_segment_block& block = segment.blocks[i];
      if (block.state == ASHLAR_BLOCK_FREE) least = std::max<std::size_t>(least, block.size_bytes);
    }
  });
  return least;
}

}  // namespace ashlar::torch
