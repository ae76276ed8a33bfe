#include "bench/rival_rmm.h"

#include <cuda_runtime_api.h>

#include <cstddef>
#include <new>
#include <optional>
#include <utility>

// In the namespace where RMM and CCCL look for CUDA.
namespace {

// Events of streams differ, as RMM tells streams by them.
cudaError_t FakeEventCreate(cudaEvent_t* event, unsigned) {
  static std::uint64_t events = 0;
  *event = reinterpret_cast<cudaEvent_t>(++events);
  return cudaSuccess;
}
cudaError_t FakeStreamGetId(cudaStream_t stream, unsigned long long* id) {
  *id = reinterpret_cast<std::uint64_t>(stream);
  return cudaSuccess;
}
cudaError_t FakeEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
[[maybe_unused]] cudaError_t FakeOnEvent(cudaEvent_t) { return cudaSuccess; }
cudaError_t FakeStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }
[[maybe_unused]] cudaError_t FakeStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t FakeGetLastError() { return cudaSuccess; }
const char* FakeErrorText(cudaError_t) { return "an error"; }

}  // namespace

// RMM's calls on events reach ours by name, at compile time: its allocate and deallocate are templates of its headers.
#define cudaEventCreateWithFlags FakeEventCreate
#define cudaStreamGetId FakeStreamGetId
#define cudaEventRecord FakeEventRecord
#define cudaEventSynchronize FakeOnEvent
#define cudaEventDestroy FakeOnEvent
#define cudaStreamWaitEvent FakeStreamWaitEvent
#define cudaStreamSynchronize FakeStreamSynchronize
#define cudaGetLastError FakeGetLastError
#define cudaGetErrorName FakeErrorText
#define cudaGetErrorString FakeErrorText
#include <rmm/cuda_device.hpp>
#include <rmm/mr/detail/arena_memory_resource_impl.hpp>
#include <rmm/mr/detail/pool_memory_resource_impl.hpp>

// The library asks the CUDA runtime that it brings along, which may find no device: ours is found before it.
rmm::cuda_device_id rmm::get_current_cuda_device() { return cuda_device_id{0}; }
int rmm::get_num_cuda_devices() { return 1; }
std::pair<std::size_t, std::size_t> rmm::available_device_memory() {
  constexpr std::size_t kBytes = std::size_t{1} << 42;
  return {kBytes, kBytes};
}

namespace ashlar::bench {
namespace {

// Addresses, without memory behind them.
class Upstream {
 public:
  void* allocate_sync(std::size_t bytes, std::size_t = 0) {
    static std::uint64_t next = std::uint64_t{1} << 40;
    const std::uint64_t address = next;
    next += RoundUp(bytes, 2 * kMiB);
    return reinterpret_cast<void*>(address);
  }
  void deallocate_sync(void*, std::size_t, std::size_t = 0) noexcept {}
  void* allocate(cuda::stream_ref, std::size_t bytes, std::size_t = 0) { return allocate_sync(bytes); }
  void deallocate(cuda::stream_ref, void*, std::size_t, std::size_t = 0) noexcept {}
  bool operator==(const Upstream&) const { return true; }
  friend void get_property(const Upstream&, cuda::mr::device_accessible) noexcept {}
};

constexpr std::size_t kAlignment = 256;

cuda::stream_ref RefOf(Stream stream) { return cuda::stream_ref{reinterpret_cast<cudaStream_t>(Handle(stream))}; }

}  // namespace

struct RivalRmm::Impl {
  std::optional<rmm::mr::detail::pool_memory_resource_impl> pool;
  std::optional<rmm::mr::detail::arena_memory_resource_impl> arena;
};

RivalRmm::RivalRmm(Kind kind) : impl_(std::make_unique<Impl>()) {
  if (kind == Kind::kPool) impl_->pool.emplace(Upstream{}, 256 * kMiB, std::nullopt);
  if (kind == Kind::kArena) impl_->arena.emplace(Upstream{}, 300 * kGiB, false);
}
RivalRmm::~RivalRmm() = default;

std::uint64_t RivalRmm::Allocate(std::uint64_t bytes, Stream stream) {
  void* block = impl_->pool.has_value() ? impl_->pool->allocate(RefOf(stream), bytes, kAlignment)
                                        : impl_->arena->allocate(RefOf(stream), bytes, kAlignment);
  return reinterpret_cast<std::uint64_t>(block);
}

void RivalRmm::Free(std::uint64_t address, std::uint64_t bytes, Stream stream) {
  void* block = reinterpret_cast<void*>(address);
  if (impl_->pool.has_value()) return impl_->pool->deallocate(RefOf(stream), block, bytes, kAlignment);
  impl_->arena->deallocate(RefOf(stream), block, bytes, kAlignment);
}

}  // namespace ashlar::bench
