// Memory around a block, and memory that other processes share.
#include "allocator/plugins/torch/failure.h"
#include "allocator/plugins/torch_native/allocator.h"
#include "allocator/plugins/torch_native/shared_memory.h"

namespace ashlar::torch {
namespace {

const char* AddressIn(const void* memory) { return static_cast<const char*>(memory); }

// ASHLAR_INVALID_ARGUMENT: it is no expandable segment.
ashlar_status PageAt(ashlar_allocator* allocator, const void* address, ashlar_shared_page& page) {
  page = {};
  page.struct_size = sizeof(page);
  return ashlar_share_page(allocator, address, &page);
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
  ashlar_shared_page page;
  TORCH_CHECK(PageAt(allocator, memory, page) == ASHLAR_INVALID_ARGUMENT, "ashlar: getBaseAllocation: the tensor lies ",
              "in an expandable segment, which is no one allocation: allocate it under expandable_segments:False");
  if (bytes != nullptr) *bytes = block.segment_bytes;
  return block.segment_address;
}

native::ShareableHandle NativeAllocator::shareIpcHandle(void* memory) {
  const auto [allocator, block] = BlockOf(memory);
  ashlar_shared_page page;
  ashlar_status status = PageAt(allocator, block.address, page);
  if (status == ASHLAR_INVALID_ARGUMENT)
    return ShareMemory(block.segment_address, AddressIn(memory) - AddressIn(block.segment_address));
  const void* const first = page.address;
  const std::size_t page_bytes = page.size_bytes;
  std::vector<int> files;
  while (status == ASHLAR_OK) {
    TORCH_CHECK(page.size_bytes == page_bytes, "ashlar: shareIpcHandle: the tensor lies on pages of several sizes, as ",
                "policy:ashlar maps them: allocate it under expandable_segments:True alone");
    files.push_back(page.file);
    const char* const next = AddressIn(page.address) + page.size_bytes;
    if (next >= AddressIn(block.address) + block.size_bytes)
      return SharePages(page_bytes, files, AddressIn(memory) - AddressIn(first));
    status = PageAt(allocator, next, page);
  }
  ThrowFailure(status, ashlar_device(allocator));
}

std::shared_ptr<void> NativeAllocator::getIpcDevPtr(std::string handle) { return OpenShared(handle); }

}  // namespace ashlar::torch
