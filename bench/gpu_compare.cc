// The hot path on a GPU beside the driver's own: pairs of one request and its free, and the same among 64 live blocks,
// for this allocator and for cudaMallocAsync on a pool that keeps its memory. Answers are checked: every block is
// aligned and apart from all that are live, and both hold the same number in the end. bench/gpu_compare_torch.py is
// PyTorch's part.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "allocator/base/rng.h"
#include "allocator/core/caching_allocator.h"
#include "allocator/device/cuda_device.h"

namespace ashlar {
namespace {

constexpr int kPairs = 20'000;
constexpr std::size_t kLive = 64;

void Must(bool is_fine, const char* what) {
  if (is_fine) return;
  std::fprintf(stderr, "gpu_compare: wrong answer: %s\n", what);
  std::exit(1);
}

class Ashlar {
 public:
  explicit Ashlar(device::Device* device) : allocator_(device, policy::Options{}) {}
  std::uint64_t Allocate(std::uint64_t bytes, Stream stream) {
    const absl::StatusOr<std::uint64_t> address = allocator_.AllocateAddress(bytes, stream);
    return address.ok() ? *address : 0;
  }
  void Free(std::uint64_t address, Stream) { allocator_.FreeAddress(address); }
  void Return() { allocator_.EmptyCache(); }

 private:
  core::CachingAllocator allocator_;
};

class Driver {
 public:
  Driver() {
    cudaMemPool_t pool = nullptr;
    std::uint64_t keep = ~std::uint64_t{0};
    Must(cudaDeviceGetDefaultMemPool(&pool, 0) == cudaSuccess &&
             cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep) == cudaSuccess,
         "the driver's pool");
  }
  std::uint64_t Allocate(std::uint64_t bytes, Stream stream) {
    void* pointer = nullptr;
    return cudaMallocAsync(&pointer, bytes, Native(stream)) == cudaSuccess ? reinterpret_cast<std::uint64_t>(pointer)
                                                                           : 0;
  }
  void Free(std::uint64_t address, Stream stream) { cudaFreeAsync(reinterpret_cast<void*>(address), Native(stream)); }
  void Return() { cudaDeviceSynchronize(); }

 private:
  static cudaStream_t Native(Stream stream) { return reinterpret_cast<cudaStream_t>(Handle(stream)); }
};

double NanosecondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count();
}

template <typename Allocator>
double OnePair(Allocator& allocator, Stream stream, std::uint64_t bytes) {
  const std::uint64_t first = allocator.Allocate(bytes, stream);
  Must(first != 0 && first % 256 == 0, "a block is not aligned");
  allocator.Free(first, stream);
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < kPairs; ++i) {
    const std::uint64_t address = allocator.Allocate(bytes, stream);
    if (address == 0) Must(false, "no memory");
    allocator.Free(address, stream);
  }
  return NanosecondsSince(begin) / kPairs;
}

// Each pair replaces one of the live blocks, of a size that varies. The first pass checks, the second is timed.
template <typename Allocator>
double AmongLive(Allocator& allocator, Stream stream, std::uint64_t most_bytes) {
  double ns = 0;
  for (const bool is_timed : {false, true}) {
    Rng rng(1);
    std::vector<std::uint64_t> addresses(kLive, 0), sizes(kLive, 0);
    std::map<std::uint64_t, std::uint64_t> live;
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kPairs; ++i) {
      const std::size_t at = rng.Below(kLive);
      if (addresses[at] != 0) {
        allocator.Free(addresses[at], stream);
        if (!is_timed) live.erase(addresses[at]);
      }
      sizes[at] = 1 + rng.Below(most_bytes);
      addresses[at] = allocator.Allocate(sizes[at], stream);
      if (is_timed) continue;
      Must(addresses[at] != 0 && addresses[at] % 256 == 0, "a block is not aligned");
      const auto after = live.lower_bound(addresses[at]);
      Must(after == live.end() || addresses[at] + sizes[at] <= after->first, "two live blocks overlap");
      Must(after == live.begin() || std::prev(after)->second <= addresses[at], "two live blocks overlap");
      live[addresses[at]] = addresses[at] + sizes[at];
    }
    if (is_timed) ns = NanosecondsSince(begin) / kPairs;
    for (const std::uint64_t address : addresses) {
      if (address != 0) allocator.Free(address, stream);
    }
  }
  return ns;
}

template <typename Allocator>
void Measure(const char* name, Allocator& allocator, Stream stream) {
  std::printf("%-16s", name);
  for (const std::uint64_t bytes : {std::uint64_t{512}, kMiB, 20 * kMiB}) {
    std::printf(" %14.0f", OnePair(allocator, stream, bytes));
  }
  for (const std::uint64_t most_bytes : {64 * kKiB, 16 * kMiB}) {
    std::printf(" %14.0f", AmongLive(allocator, stream, most_bytes));
  }
  std::printf("\n");
  allocator.Return();
}

int Main() {
  const auto device = device::CudaDevice::Open({.ordinal = 0});
  if (!device.ok()) {
    std::printf("skipped: %s\n", std::string(device.status().message()).c_str());
    return 0;
  }
  cudaStream_t native = nullptr;
  Must(cudaStreamCreateWithFlags(&native, cudaStreamNonBlocking) == cudaSuccess, "a stream");
  const Stream stream{reinterpret_cast<std::uint64_t>(native)};
  std::printf("ns of one request and its free; among %zu live: of up to\n", kLive);
  std::printf("%-16s %14s %14s %14s %14s %14s\n", "", "512 B", "1 MiB", "20 MiB", "live, 64 KiB", "live, 16 MiB");
  Ashlar ashlar(device->get());
  Measure("ashlar", ashlar, stream);
  Driver driver;
  Measure("cudaMallocAsync", driver, stream);
  return 0;
}

}  // namespace
}  // namespace ashlar

int main() { return ashlar::Main(); }
