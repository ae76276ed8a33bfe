#include "bench/rival_cub.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>

#include "allocator/base/check.h"

namespace ashlar::bench {
namespace {

std::atomic<int> event_ns{0};

// The device's memory: what is out, of how much.
struct FakeMemory {
  std::mutex mutex;
  std::uint64_t next_address = std::uint64_t{1} << 40;
  std::uint64_t capacity_bytes = 0;
  std::uint64_t used_bytes = 0;
  std::uint64_t peak_bytes = 0;
  std::uint64_t calls = 0;
  std::map<std::uint64_t, std::uint64_t> sizes;
};
FakeMemory& Memory() {
  static auto* memory = new FakeMemory;
  return *memory;
}

void SpendEventTime() {
  const int wanted = event_ns.load(std::memory_order_relaxed);
  if (wanted == 0) return;
  const auto until = std::chrono::steady_clock::now() + std::chrono::nanoseconds(wanted);
  while (std::chrono::steady_clock::now() < until) {
  }
}

cudaError_t FakeMalloc(void** address, std::size_t size_bytes) {
  FakeMemory& memory = Memory();
  const std::lock_guard lock(memory.mutex);
  ++memory.calls;
  if (size_bytes > memory.capacity_bytes - memory.used_bytes) return cudaErrorMemoryAllocation;
  *address = reinterpret_cast<void*>(memory.next_address);
  memory.sizes[memory.next_address] = size_bytes;
  memory.next_address += RoundUp(size_bytes, 512);
  memory.used_bytes += size_bytes;
  memory.peak_bytes = std::max(memory.peak_bytes, memory.used_bytes);
  return cudaSuccess;
}
cudaError_t FakeFree(void* address) {
  FakeMemory& memory = Memory();
  const std::lock_guard lock(memory.mutex);
  ++memory.calls;
  const auto it = memory.sizes.find(reinterpret_cast<std::uint64_t>(address));
  if (it == memory.sizes.end()) return cudaSuccess;  // of an object before the latest
  memory.used_bytes -= it->second;
  memory.sizes.erase(it);
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
#define cudaFree ::ashlar::bench::FakeFree
#define cudaEventDestroy(event) ::ashlar::bench::FakeNothing()
#define cudaGetLastError() ::ashlar::bench::FakeNothing()
#include <cub/util_allocator.cuh>
#include <cub/version.cuh>

namespace ashlar::bench {

struct RivalCub::Impl {
  explicit Impl(const RivalCubOptions& options)
      : allocator(options.growth, options.min_bin, options.max_bin, options.most_cached_bytes) {}
  cub::CachingDeviceAllocator allocator;
};

RivalCub::RivalCub(RivalCubOptions options) : options_(options), impl_(std::make_unique<Impl>(options)) {
  event_ns.store(options.event_ns);
  FakeMemory& memory = Memory();
  const std::lock_guard lock(memory.mutex);
  memory.capacity_bytes = options.capacity_bytes;
  memory.used_bytes = memory.peak_bytes = memory.calls = 0;
  memory.sizes.clear();
}

RivalCub::~RivalCub() = default;

std::uint64_t RivalCub::Allocate(std::uint64_t bytes, Stream stream) {
  void* address = nullptr;
  const auto handle = reinterpret_cast<cudaStream_t>(Handle(stream));
  if (impl_->allocator.DeviceAllocate(0, &address, bytes, handle) != cudaSuccess) return 0;
  return reinterpret_cast<std::uint64_t>(address);
}

void RivalCub::Free(std::uint64_t address) {
  ASHLAR_CHECK(impl_->allocator.DeviceFree(0, reinterpret_cast<void*>(address)) == cudaSuccess);
}

std::string RivalCub::Version() { return std::to_string(CUB_VERSION); }

std::int64_t RivalCub::live_bytes() const { return static_cast<std::int64_t>(impl_->allocator.cached_bytes[0].live); }

std::uint64_t RivalCub::reserved_bytes() {
  const std::lock_guard lock(Memory().mutex);
  return Memory().used_bytes;
}

std::uint64_t RivalCub::peak_reserved_bytes() {
  const std::lock_guard lock(Memory().mutex);
  return Memory().peak_bytes;
}

std::uint64_t RivalCub::driver_calls() {
  const std::lock_guard lock(Memory().mutex);
  return Memory().calls;
}

std::uint64_t RivalCub::BinBytes(std::uint64_t bytes) const {
  std::uint64_t bin_bytes = 1;
  unsigned bin = 0;
  for (; bin < options_.min_bin || bin_bytes < bytes; ++bin) bin_bytes *= options_.growth;
  return bin > options_.max_bin ? bytes : bin_bytes;
}

}  // namespace ashlar::bench
