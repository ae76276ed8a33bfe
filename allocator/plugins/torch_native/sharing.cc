// Memory around a block, and memory that other processes share.
#include "allocator/plugins/torch/failure.h"
#include "allocator/plugins/torch_native/allocator.h"
#include "allocator/plugins/torch_native/segments.h"
#include "allocator/plugins/torch_native/shared_memory.h"

namespace ashlar::torch {
namespace {

// Pages that are mapped have no handle that cudaIpcGetMemHandle knows.
void ExpectPlainSegment(const ashlar_allocator* allocator, const ashlar_block& block, const char* call) {
  ForEachSegment(allocator, [&](const ashlar_segment& segment) {
    TORCH_CHECK(segment.address != block.segment_address || segment.is_expandable == 0, "ashlar: ", call,
                ": the tensor lies in an expandable segment, which is not shared with other processes: allocate it ",
                "under expandable_segments:False");
  });
}

}  // namespace

std::pair<ashlar_allocator*, ashlar_block> NativeAllocator::BlockOf(const void* memory) {
  ashlar_allocator* const allocator = AllocatorThatHolds(memory);
  ashlar_block block{};
  block.struct_size = sizeof(block);
  Expect(ashlar_find_block(allocator, memory, &block), static_cast<c10::DeviceIndex>(ashlar_device(allocator)));
  return {allocator, block};
}

void* NativeAllocator::getBaseAllocation(void* memory, std::size_t* bytes) {
  const auto [allocator, block] = BlockOf(memory);
  ExpectPlainSegment(allocator, block, "getBaseAllocation");
  if (bytes != nullptr) *bytes = block.segment_bytes;
  return block.segment_address;
}

native::ShareableHandle NativeAllocator::shareIpcHandle(void* memory) {
  const auto [allocator, block] = BlockOf(memory);
  ExpectPlainSegment(allocator, block, "shareIpcHandle");
  return ShareMemory(block.segment_address, static_cast<char*>(memory) - static_cast<char*>(block.segment_address));
}

std::shared_ptr<void> NativeAllocator::getIpcDevPtr(std::string handle) { return OpenShared(handle); }

}  // namespace ashlar::torch
