#include "bench/rival_cub.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <chrono>

#include "allocator/base/check.h"

namespace ashlar::bench {
namespace {

std::atomic<std::uint64_t> next_address{std::uint64_t{1} << 40};
std::atomic<int> event_ns{0};

void SpendEventTime() {
  const int wanted = event_ns.load(std::memory_order_relaxed);
  if (wanted == 0) return;
  const auto until = std::chrono::steady_clock::now() + std::chrono::nanoseconds(wanted);
  while (std::chrono::steady_clock::now() < until) {
  }
}

cudaError_t FakeMalloc(void** address, std::size_t size_bytes) {
  *address = reinterpret_cast<void*>(next_address.fetch_add(RoundUp(size_bytes, 512)));
  return cudaSuccess;
}
cudaError_t FakeEventCreate(cudaEvent_t* event, unsigned) {
  *event = nullptr;
  return cudaSuccess;
}
cudaError_t FakeOnEvent() {
  SpendEventTime();
  return cudaSuccess;
}
cudaError_t FakeGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t FakeNothing() { return cudaSuccess; }

}  // namespace
}  // namespace ashlar::bench

// CUB's calls reach ours by name, at compile time: nothing of the runtime is linked for them.
#define cudaMalloc ::ashlar::bench::FakeMalloc
#define cudaEventCreateWithFlags ::ashlar::bench::FakeEventCreate
#define cudaEventRecord(event, stream) ::ashlar::bench::FakeOnEvent()
#define cudaEventQuery(event) ::ashlar::bench::FakeOnEvent()
#define cudaGetDevice ::ashlar::bench::FakeGetDevice
#define cudaSetDevice(device) ::ashlar::bench::FakeNothing()
#define cudaFree(address) ::ashlar::bench::FakeNothing()
#define cudaEventDestroy(event) ::ashlar::bench::FakeNothing()
#define cudaGetLastError() ::ashlar::bench::FakeNothing()
#include <cub/util_allocator.cuh>
#include <cub/version.cuh>

namespace ashlar::bench {

struct RivalCub::Impl {
  explicit Impl(const RivalCubOptions& options)
      : allocator(options.growth, options.min_bin, options.max_bin, cub::CachingDeviceAllocator::INVALID_SIZE) {}
  cub::CachingDeviceAllocator allocator;
};

RivalCub::RivalCub(RivalCubOptions options) : options_(options), impl_(std::make_unique<Impl>(options)) {
  event_ns.store(options.event_ns);
}

RivalCub::~RivalCub() = default;

std::uint64_t RivalCub::Allocate(std::uint64_t bytes, Stream stream) {
  void* address = nullptr;
  const auto handle = reinterpret_cast<cudaStream_t>(Handle(stream));
  ASHLAR_CHECK(impl_->allocator.DeviceAllocate(0, &address, bytes, handle) == cudaSuccess);
  return reinterpret_cast<std::uint64_t>(address);
}

void RivalCub::Free(std::uint64_t address) {
  ASHLAR_CHECK(impl_->allocator.DeviceFree(0, reinterpret_cast<void*>(address)) == cudaSuccess);
}

std::string RivalCub::Version() { return std::to_string(CUB_VERSION); }

std::int64_t RivalCub::live_bytes() const { return static_cast<std::int64_t>(impl_->allocator.cached_bytes[0].live); }

std::uint64_t RivalCub::BinBytes(std::uint64_t bytes) const {
  std::uint64_t bin_bytes = 1;
  unsigned bin = 0;
  for (; bin < options_.min_bin || bin_bytes < bytes; ++bin) bin_bytes *= options_.growth;
  return bin > options_.max_bin ? bytes : bin_bytes;
}

}  // namespace ashlar::bench
