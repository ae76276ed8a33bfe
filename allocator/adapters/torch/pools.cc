#include <memory>
#include <thread>
#include <utility>

#include "allocator/adapters/torch/failure.h"
#include "allocator/adapters/torch/plugin.h"
#include "allocator/adapters/torch/process_allocators.h"

using ashlar::torch::AllocatorOf;
using ashlar::torch::PoolId;
using ashlar::torch::StreamFilter;
using ashlar::torch::ThrowFailure;

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
