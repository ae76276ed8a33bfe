// NVTX is headers only: they load the tool that the environment names at the first call, and are empty without one.
#define NVTX_AS_SYSTEM_HEADER
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtMem.h>

#include "allocator/device/nvtx_memory.h"

namespace ashlar::device {
namespace {

nvtxDomainHandle_t Domain() {
  static const nvtxDomainHandle_t domain = nvtxDomainCreateA("ashlar");
  return domain;
}

nvtxMemVirtualRangeDesc_t RangeOf(std::uint64_t address, std::uint64_t size_bytes) {
  return {size_bytes, reinterpret_cast<const void*>(address)};
}

}  // namespace

bool HasNvtx() { return true; }

std::optional<NvtxHeap> RegisterNvtxHeap(std::uint64_t address, std::uint64_t size_bytes) {
  const nvtxMemVirtualRangeDesc_t range = RangeOf(address, size_bytes);
  nvtxMemHeapDesc_t heap = {};
  heap.extCompatID = NVTX_EXT_COMPATID_MEM;
  heap.structSize = sizeof(heap);
  heap.usage = NVTX_MEM_HEAP_USAGE_TYPE_SUB_ALLOCATOR;
  heap.type = NVTX_MEM_TYPE_VIRTUAL_ADDRESS;
  heap.typeSpecificDescSize = sizeof(range);
  heap.typeSpecificDesc = &range;
  const nvtxMemHeapHandle_t handle = nvtxMemHeapRegister(Domain(), &heap);
  const auto value = reinterpret_cast<std::uint64_t>(handle);
  // Without a tool some versions of the header answer 0, others -1.
  if (value == 0 || value == ~std::uint64_t{0}) return std::nullopt;
  return NvtxHeap{value};
}

void RegisterNvtxRegion(NvtxHeap heap, std::uint64_t address, std::uint64_t size_bytes) {
  const nvtxMemVirtualRangeDesc_t range = RangeOf(address, size_bytes);
  nvtxMemRegionsRegisterBatch_t batch = {};
  batch.extCompatID = NVTX_EXT_COMPATID_MEM;
  batch.structSize = sizeof(batch);
  batch.regionType = NVTX_MEM_TYPE_VIRTUAL_ADDRESS;
  batch.heap = reinterpret_cast<nvtxMemHeapHandle_t>(static_cast<std::uint64_t>(heap));
  batch.regionCount = 1;
  batch.regionDescElementSize = sizeof(range);
  batch.regionDescElements = &range;
  nvtxMemRegionsRegister(Domain(), &batch);
}

void UnregisterNvtxRegion(std::uint64_t address) {
  nvtxMemRegionRef_t region;
  region.pointer = reinterpret_cast<const void*>(address);
  nvtxMemRegionsUnregisterBatch_t batch = {};
  batch.extCompatID = NVTX_EXT_COMPATID_MEM;
  batch.structSize = sizeof(batch);
  batch.refType = NVTX_MEM_REGION_REF_TYPE_POINTER;
  batch.refCount = 1;
  batch.refElementSize = sizeof(region);
  batch.refElements = &region;
  nvtxMemRegionsUnregister(Domain(), &batch);
}

}  // namespace ashlar::device
