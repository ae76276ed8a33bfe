// In builds without NVTX's headers.
#include "allocator/device/nvtx_memory.h"

namespace ashlar::device {

bool HasNvtx() { return false; }

std::optional<NvtxHeap> RegisterNvtxHeap(std::uint64_t /*address*/, std::uint64_t /*size_bytes*/) {
  return std::nullopt;
}
void RegisterNvtxRegion(NvtxHeap /*heap*/, std::uint64_t /*address*/, std::uint64_t /*size_bytes*/) {}
void UnregisterNvtxRegion(std::uint64_t /*address*/) {}

}  // namespace ashlar::device
