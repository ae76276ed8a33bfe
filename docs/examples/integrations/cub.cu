// The scratch memory of CUB's algorithms, of growing size, from CUB's allocator (`cub plain`) and from Ashlar's: the
// calls are the same.
//
//   nvcc -std=c++17 -cudart shared -I PREFIX/include cub.cu -L PREFIX/lib -lashlar -o cub
#include <ashlar/cub.h>

#include <cstdio>
#include <cstring>
#include <cub/device/device_radix_sort.cuh>
#include <cub/util_allocator.cuh>

namespace {

constexpr int kRounds = 100;

// Sorts in memory of the allocator; how often all of it was to be had.
template <typename Allocator>
int Sort(Allocator& allocator) {
  int sorted = 0;
  for (int round = 1; round <= kRounds; ++round) {
    const int count = 20000 * round;
    int *in = nullptr, *out = nullptr;
    void* scratch = nullptr;
    std::size_t scratch_bytes = 0;
    allocator.DeviceAllocate(reinterpret_cast<void**>(&in), count * sizeof(int));
    allocator.DeviceAllocate(reinterpret_cast<void**>(&out), count * sizeof(int));
    cub::DeviceRadixSort::SortKeys(nullptr, scratch_bytes, in, out, count);
    allocator.DeviceAllocate(&scratch, scratch_bytes);
    const bool is_done = cub::DeviceRadixSort::SortKeys(scratch, scratch_bytes, in, out, count) == cudaSuccess;
    sorted += is_done ? 1 : 0;
    for (void* memory : {scratch, static_cast<void*>(out), static_cast<void*>(in)}) allocator.DeviceFree(memory);
  }
  return sorted;
}

}  // namespace

int main(int argc, char** argv) {
  int sorted = 0;
  if (argc > 1 && std::strcmp(argv[1], "plain") == 0) {
    cub::CachingDeviceAllocator allocator;
    sorted = Sort(allocator);
  } else {
    ashlar::CachingDeviceAllocator allocator;
    sorted = Sort(allocator);
  }
  std::printf("sorted in %d of %d rounds\n", sorted, kRounds);
  return sorted == kRounds ? 0 : 1;
}
