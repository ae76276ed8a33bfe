#include "allocator/core/nvtx_pools.h"

#include <iterator>
#include <optional>

namespace ashlar::core {

const NvtxPools::Pool* NvtxPools::Find(std::uint64_t address) const {
  const auto after = pools_.upper_bound(address);
  if (after == pools_.begin()) return nullptr;
  const Pool& pool = std::prev(after)->second;
  return address < pool.end ? &pool : nullptr;
}

void NvtxPools::OnEvent(const trace::Event& event, std::uint64_t block_size_bytes) {
  switch (event.action) {
    case trace::Action::kSegmentAlloc:
      if (const auto heap = device::RegisterNvtxHeap(event.address, event.size_bytes); heap.has_value()) {
        pools_[event.address] = {event.address + event.size_bytes, *heap};
      }
      break;
    case trace::Action::kSegmentFree:
      pools_.erase(event.address);  // the tool has ended it: its memory is freed by now
      break;
    case trace::Action::kAlloc:
      if (const Pool* pool = Find(event.address); pool != nullptr) {
        device::RegisterNvtxRegion(pool->heap, event.address, event.size_bytes);
      }
      break;
    case trace::Action::kFreeCompleted:
      if (Find(event.address) != nullptr) device::UnregisterNvtxRegion(event.address);
      break;
    default:
      break;
  }
  if (next_ != nullptr) next_->OnEvent(event, block_size_bytes);
}

}  // namespace ashlar::core
