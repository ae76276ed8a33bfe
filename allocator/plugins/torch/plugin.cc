#include "allocator/plugins/torch/plugin.h"

#include <atomic>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "allocator/plugins/torch/failure.h"
#include "allocator/plugins/torch/process_allocators.h"

using ashlar::torch::AllocatorOf;
using ashlar::torch::FindAllocator;
using ashlar::torch::ForEachOpen;
using ashlar::torch::ThrowFailure;

namespace {

std::atomic<ashlar_torch_failed> failure_observer = nullptr;

// A free runs in destructors, which may not throw.
void TellBadFree(const void* memory, int device) {
  std::fprintf(stderr, "ashlar: torch: free of %p on GPU %d: %s\n", memory, device, ashlar_last_error());
}

void FreeOn(void* memory, int device) {
  ashlar_status status = ASHLAR_OK;
  ashlar_allocator* allocator = FindAllocator(device, &status);
  if (allocator != nullptr) status = ashlar_free(allocator, memory);
  if (status != ASHLAR_OK) TellBadFree(memory, device);
}

// The text of the failure is the last one, whatever the observer calls.
[[noreturn]] void FailRequest(ashlar_status status, int device, std::size_t bytes) {
  const std::string text = ashlar_last_error();
  const ashlar_torch_failed observer = failure_observer.load();
  if (status == ASHLAR_OUT_OF_MEMORY && observer != nullptr) observer(device, bytes);
  ThrowFailure(status, device, text);
}

}  // namespace

void* ashlar_torch_alloc(std::size_t bytes, int device, void* stream) {
  void* memory = nullptr;
  const ashlar_status status = ashlar_allocate(AllocatorOf(device), bytes, stream, &memory);
  if (status != ASHLAR_OK) FailRequest(status, device, bytes);
  return memory;
}

void ashlar_torch_free(void* memory, std::size_t, int device, void*) noexcept { FreeOn(memory, device); }

void* ashlar_torch_segment_alloc(std::size_t bytes, int device, void* stream) noexcept {
  ashlar_status status = ASHLAR_OK;
  ashlar_allocator* allocator = FindAllocator(device, &status);
  void* memory = nullptr;
  if (allocator != nullptr) status = ashlar_allocate(allocator, bytes, stream, &memory);
  return status == ASHLAR_OK ? memory : nullptr;
}

void ashlar_torch_segment_free(void* memory, std::size_t, int device, void*) noexcept {
  FreeOn(memory, device);
  if (ashlar_allocator* allocator = ashlar::torch::OpenAllocator(device); allocator != nullptr) {
    ashlar_empty_cache(allocator);  // a device that refuses is refused to PyTorch's next request
  }
}

ashlar_allocator* ashlar_torch_open_allocator(int device) { return ashlar::torch::OpenAllocator(device); }

void ashlar_torch_observe(ashlar_torch_opened opened, ashlar_torch_failed failed) {
  ashlar::torch::ObserveOpening(opened);
  failure_observer = failed;
}

void ashlar_torch_init(int) {}

void ashlar_torch_reset() {
  ForEachOpen([](int device, ashlar_allocator* allocator) {
    if (const ashlar_status status = ashlar_empty_cache(allocator); status != ASHLAR_OK) ThrowFailure(status, device);
  });
}

void ashlar_torch_memory_fraction(double fraction, int device) {
  const ashlar_status status = ashlar_set_memory_fraction(AllocatorOf(device), fraction);
  if (status != ASHLAR_OK) ThrowFailure(status, device);
}

void* ashlar_torch_base_alloc(void* memory, std::size_t* bytes) {
  void* base = memory;
  ForEachOpen([&](int, ashlar_allocator* allocator) {
    ashlar_block block = {};
    block.struct_size = sizeof(block);
    if (base != memory || ashlar_find_block(allocator, memory, &block) != ASHLAR_OK) return;
    base = block.segment_address;
    if (bytes != nullptr) *bytes = block.segment_bytes;
  });
  return base;
}

void ashlar_torch_record_stream(void* memory, void* stream) {
  if (memory == nullptr) return;
  bool is_done = false;
  ForEachOpen([&](int device, ashlar_allocator* allocator) {
    if (is_done) return;
    const ashlar_status status = ashlar_record_stream(allocator, memory, stream);
    is_done = status == ASHLAR_OK;
    if (!is_done && status != ASHLAR_INVALID_ARGUMENT) ThrowFailure(status, device);
  });
}

using ashlar::torch::PoolId;
using ashlar::torch::StreamFilter;

namespace {

ashlar_pool ToPool(const PoolId& id) { return {id.first, id.second}; }

int AskFilter(void* context, ashlar_stream stream) {
  return (*static_cast<const StreamFilter*>(context))(stream) ? 1 : 0;
}
void DeleteFilter(void* context) { delete static_cast<StreamFilter*>(context); }

ashlar_status BeginPool(ashlar_allocator* allocator, ashlar_pool pool, int route, StreamFilter filter) {
  auto kept = std::make_unique<StreamFilter>(std::move(filter));
  return ashlar_begin_pool(allocator, pool, route, AskFilter, kept.release(), DeleteFilter);
}

}  // namespace

void ashlar_torch_begin_allocate_to_pool(int device, PoolId pool, StreamFilter filter) {
  const ashlar_status status = BeginPool(AllocatorOf(device), ToPool(pool), ASHLAR_ROUTE_CAPTURE, std::move(filter));
  if (status != ASHLAR_OK) ThrowFailure(status, device);
}

void ashlar_torch_end_allocate_to_pool(int device, PoolId pool) {
  const ashlar_status status = ashlar_end_pool(AllocatorOf(device), ToPool(pool));
  if (status != ASHLAR_OK) ThrowFailure(status, device);
}

void ashlar_torch_release_pool(int device, PoolId pool) {
  const ashlar_status status = ashlar_release_pool(AllocatorOf(device), ToPool(pool));
  if (status != ASHLAR_OK) ThrowFailure(status, device);
}

ashlar_status ashlar_torch_begin_thread_pool(int device, ashlar_pool pool) {
  ashlar_status status = ASHLAR_OK;
  ashlar_allocator* allocator = ashlar::torch::FindAllocator(device, &status);
  if (allocator == nullptr) return status;
  return BeginPool(allocator, pool, ASHLAR_ROUTE_PLAIN,
                   [owner = std::this_thread::get_id()](void*) { return std::this_thread::get_id() == owner; });
}
