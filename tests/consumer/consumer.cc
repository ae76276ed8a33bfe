// A program of somebody else: it uses the installed headers and library, nothing of the source tree. It allocates from
// a simulated device of 1 GiB, frees, runs out of memory, and says what it saw; writes into memory that it allocates
// from a host device; and says what CUDA there is, which compiles without the toolkit and links in every build.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

#include "absl/status/statusor.h"
#include "allocator/base/units.h"
#include "allocator/core/caching_allocator.h"
#include "allocator/device/cuda_device.h"
#include "allocator/device/host_device.h"
#include "allocator/device/sim_device.h"
#include "allocator/policy/options.h"

namespace {

using ashlar::kGiB;
using ashlar::kMiB;
using ashlar::Stream;

int Fail(const char* what) {
  std::fprintf(stderr, "consumer: %s\n", what);
  return 1;
}

bool HostMemoryWorks() {
  ashlar::device::HostDevice device({.capacity_bytes = 64 * kMiB});
  ashlar::core::CachingAllocator allocator(&device, ashlar::policy::Options{});
  const auto address = allocator.AllocateAddress(3 * kMiB, Stream{0});
  if (!address.ok()) return false;
  char* memory = reinterpret_cast<char*>(static_cast<std::uintptr_t>(*address));
  std::memset(memory, 7, 3 * kMiB);
  const bool is_written = memory[3 * kMiB - 1] == 7;
  return allocator.FreeAddress(*address) && is_written;
}

void SayWhatCudaThereIs() {
  const auto device = ashlar::device::CudaDevice::Open({.ordinal = 0});
  const std::string text = device.ok() ? ashlar::FormatBytes((*device)->GetMemoryInfo().total_bytes)
                                       : std::string(device.status().message());
  std::printf("CUDA device 0: %s\n", text.c_str());
}

}  // namespace

int main() {
  const auto options = ashlar::policy::ParseConf("max_split_size_mb:128", ashlar::policy::Compat::kTorch210);
  if (!options.ok()) return Fail("the setting was refused");
  ashlar::device::SimDevice device({.capacity_bytes = kGiB});
  ashlar::core::CachingAllocator allocator(&device, *options);

  const auto block = allocator.Allocate(300 * kMiB, Stream{0});
  if (!block.ok()) return Fail("300 MiB of 1 GiB were refused");
  const std::uint64_t used_bytes = device.used_bytes();
  allocator.Free(*block);
  allocator.EmptyCache();
  if (device.used_bytes() != 0) return Fail("the cache did not return its memory");

  const auto too_large = allocator.Allocate(2 * kGiB, Stream{0});
  if (!absl::IsResourceExhausted(too_large.status())) return Fail("2 GiB of 1 GiB did not run out of memory");
  if (!allocator.Validate().ok()) return Fail("the allocator is not in order");

  if (!HostMemoryWorks()) return Fail("host memory was not to be had");
  SayWhatCudaThereIs();
  std::printf("300 MiB took %s of the device\n", ashlar::FormatBytes(used_bytes).c_str());
  return 0;
}
