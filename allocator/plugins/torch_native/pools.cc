// Private pools, captures of graphs, and checkpoints of pools.
#include <algorithm>
#include <iterator>
#include <memory>

#include "allocator/plugins/torch/failure.h"
#include "allocator/plugins/torch_native/allocator.h"
#include "allocator/plugins/torch_native/checkpoints.h"
#include "allocator/plugins/torch_native/own_memory.h"

namespace ashlar::torch {
namespace {

using RouteFilter = std::function<bool(cudaStream_t)>;

int AskRouteFilter(void* context, ashlar_stream stream) {
  return (*static_cast<const RouteFilter*>(context))(static_cast<cudaStream_t>(stream)) ? 1 : 0;
}
void DeleteRouteFilter(void* context) { delete static_cast<RouteFilter*>(context); }

// What this thread began to allocate to last.
thread_local c10::MempoolId_t begun_pool{0, 0};

ashlar_pool PoolIdOf(const c10::MempoolId_t& pool) { return {pool.first, pool.second}; }

// Until markCaptureBegin came, PyTorch took every route for a capture.
template <typename Base>
constexpr bool TellsCaptures() {
  return requires(Base& base) { base.markCaptureBegin(0); };
}
constexpr int kRoute = TellsCaptures<native::CUDAAllocator>() ? static_cast<int>(ASHLAR_ROUTE_PLAIN)
                                                              : static_cast<int>(ASHLAR_ROUTE_CAPTURE);

}  // namespace

void NativeAllocator::beginAllocateToPool(c10::DeviceIndex device, c10::MempoolId_t pool, RouteFilter filter) {
  begun_pool = pool;
  auto kept = std::make_unique<RouteFilter>(std::move(filter));
  Expect(
      ashlar_begin_pool(AllocatorOf(device), PoolIdOf(pool), kRoute, AskRouteFilter, kept.release(), DeleteRouteFilter),
      device);
}

void NativeAllocator::endAllocateToPool(c10::DeviceIndex device, c10::MempoolId_t pool) {
  Expect(ashlar_end_pool(AllocatorOf(device), PoolIdOf(pool)), device);
}

// PyTorch names no pool: a capture begins in the thread that opened its route just before, and ends there too, where
// nothing else ends it. One that goes to no pool of ours is none of our business.
void NativeAllocator::markCaptureBegin(c10::DeviceIndex device) {
  const ashlar_status status = ashlar_begin_capture(AllocatorOf(device), PoolIdOf(begun_pool));
  if (status == ASHLAR_FAILED_PRECONDITION) return;
  Expect(status, device);
  Device& its = Of(device);
  const std::lock_guard<std::mutex> lock(its.mutex);
  its.captures.push_back({std::this_thread::get_id(), begun_pool});
}

void NativeAllocator::markCaptureEnd(c10::DeviceIndex device) {
  Device& its = Of(device);
  c10::MempoolId_t pool;
  {
    const std::lock_guard<std::mutex> lock(its.mutex);
    if (its.captures.empty()) return;
    auto found = std::find_if(its.captures.rbegin(), its.captures.rend(),
                              [](const auto& capture) { return capture.first == std::this_thread::get_id(); });
    if (found == its.captures.rend()) found = its.captures.rbegin();
    pool = found->second;
    its.captures.erase(std::next(found).base());
  }
  ashlar_end_capture(AllocatorOf(device), PoolIdOf(pool));
}

void NativeAllocator::releasePool(c10::DeviceIndex device, c10::MempoolId_t pool) {
  ashlar_allocator* const allocator = AllocatorOf(device);
  Expect(ashlar_release_pool(allocator, PoolIdOf(pool)), device);
  if (ashlar_pool_users(allocator, PoolIdOf(pool)) > 0) return;
  Device& its = Of(device);
  const std::lock_guard<std::mutex> lock(its.mutex);
  its.pools.erase(pool);
}

int NativeAllocator::getPoolUseCount(c10::DeviceIndex device, c10::MempoolId_t pool) {
  return static_cast<int>(ashlar_pool_users(AllocatorOf(device), PoolIdOf(pool)));
}

void NativeAllocator::createOrIncrefPool(c10::DeviceIndex device, c10::MempoolId_t pool,
                                         native::CUDAAllocator* allocator) {
  createOrIncrefPool(device, pool, std::shared_ptr<native::CUDAAllocator>(allocator, [](native::CUDAAllocator*) {}));
}

void NativeAllocator::createOrIncrefPool(c10::DeviceIndex device, c10::MempoolId_t pool,
                                         std::shared_ptr<native::CUDAAllocator> allocator) {
  Expect(allocator == nullptr ? ashlar_retain_pool(AllocatorOf(device), PoolIdOf(pool))
                              : SetOwnMemory(AllocatorOf(device), pool, std::move(allocator)),
         device);
}

void NativeAllocator::ensureExistsAndIncrefPool(c10::DeviceIndex device, c10::MempoolId_t pool) {
  Expect(ashlar_retain_pool(AllocatorOf(device), PoolIdOf(pool)), device);
}

void NativeAllocator::SetTraits(c10::DeviceIndex device, c10::MempoolId_t pool,
                                const std::function<void(Device::Traits&)>& change) {
  Device& its = Of(device);
  Device::Traits traits;
  {
    const std::lock_guard<std::mutex> lock(its.mutex);
    change(its.pools[pool]);
    traits = its.pools[pool];
  }
  Expect(ashlar_configure_pool(AllocatorOf(device), PoolIdOf(pool), traits.use_on_oom, traits.no_split), device);
}

void NativeAllocator::setUseOnOOM(c10::DeviceIndex device, c10::MempoolId_t pool, bool use_on_oom) {
  SetTraits(device, pool, [use_on_oom](Device::Traits& traits) { traits.use_on_oom = use_on_oom; });
}

void NativeAllocator::setNoSplit(c10::DeviceIndex device, c10::MempoolId_t pool) {
  SetTraits(device, pool, [](Device::Traits& traits) { traits.no_split = true; });
}

bool NativeAllocator::checkPoolLiveAllocations(c10::DeviceIndex device, c10::MempoolId_t pool,
                                               const std::unordered_set<void*>& expected) {
  return HasExactly(AllocatorOf(device), pool, expected);
}

std::shared_ptr<native::AllocatorState> NativeAllocator::getCheckpointState(c10::DeviceIndex device,
                                                                            c10::MempoolId_t pool) {
  return CheckpointOf(AllocatorOf(device), pool);
}

native::CheckpointDelta NativeAllocator::setCheckpointPoolState(c10::DeviceIndex device,
                                                                std::shared_ptr<native::AllocatorState> state) {
  const GatheredScope scope(Gather(RecordContext::STATE));
  TORCH_CHECK(state != nullptr, "ashlar: setCheckpointPoolState: there is no checkpoint");
  return GoBack(AllocatorOf(device), device, *state, raw_deleter());
}

}  // namespace ashlar::torch
