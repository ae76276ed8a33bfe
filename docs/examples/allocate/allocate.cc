// Uses memory of GPU 0, or of the host where there is none: the loop of a training run, then a request too many.
#include <iostream>

#include "allocator/core/caching_allocator.h"
#include "allocator/device/cuda_device.h"
#include "allocator/device/host_device.h"

int main() {
  using namespace ashlar;
  const auto cuda = device::CudaDevice::Open({.ordinal = 0});
  device::HostDevice host({.capacity_bytes = kGiB});
  device::Device* device = cuda.ok() ? static_cast<device::Device*>(cuda->get()) : &host;
  std::cout << (cuda.ok() ? "memory of GPU 0" : "memory of the host") << "\n";

  const auto options = policy::ParseConf("max_split_size_mb:128", policy::Compat::kTorch210);
  core::CachingAllocator allocator(device, *options);
  const Stream stream{0};  // a cudaStream_t as an integer
  for (int step = 0; step < 100; ++step) {
    const auto activations = allocator.AllocateAddress(300 * kMiB, stream);
    const auto gradients = allocator.AllocateAddress(20 * kMiB, stream);
    if (!activations.ok() || !gradients.ok()) return 1;
    // ... kernels on `stream` that use the two addresses ...
    allocator.FreeAddress(*activations);
    allocator.FreeAddress(*gradients);
  }
  const core::Stats stats = allocator.stats();
  std::cout << stats.allocation.all().allocated << " requests took " << stats.num_device_alloc << " device calls, "
            << FormatBytes(stats.reserved_bytes.all().peak) << "\n";
  std::cout << allocator.AllocateAddress(4096 * kGiB, stream).status().message() << "\n";
}
