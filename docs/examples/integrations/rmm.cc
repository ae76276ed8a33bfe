// RMM's containers and its current resource in the allocator's memory, from 26.10 (C++20) back to 25.10 (C++17):
//
//   g++ -std=c++20 -I PREFIX/include -I LIBRMM/include/rapids -I LIBRMM/include -I LOGGER/include -I CUDA/include
//       rmm.cc -L PREFIX/lib -lashlar -L LIBRMM/lib64 -lrmm -L CUDA/lib64 -lcudart -o rmm
//
// with LIBRMM and LOGGER the folders of PyPI's librmm and rapids-logger. Versions before 26.02 want
// -DLIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE.
#include <ashlar/rmm.h>

#include <cstdio>
#include <numeric>
#include <rmm/device_buffer.hpp>
#include <rmm/mr/callback_memory_resource.hpp>
#include <vector>

namespace {

constexpr int kRounds = 100;

// Numbers go to the device and back in memory of `resource`; in how many rounds they came back as they were.
int Work(rmm::device_async_resource_ref resource, cudaStream_t stream) {
  int kept = 0;
  for (int round = 1; round <= kRounds; ++round) {
    std::vector<int> in(static_cast<std::size_t>(1000 * round));
    std::iota(in.begin(), in.end(), round);
    const std::size_t bytes = in.size() * sizeof(int);
    rmm::device_buffer buffer(in.data(), bytes, stream, resource);
    std::vector<int> out(in.size());
    cudaMemcpyAsync(out.data(), buffer.data(), bytes, cudaMemcpyDeviceToHost, stream);
    cudaStreamSynchronize(stream);
    kept += in == out ? 1 : 0;
  }
  return kept;
}

}  // namespace

int main() {
  ashlar::UseInRmm(0);
  cudaStream_t stream = nullptr;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  int kept = Work(rmm::mr::get_current_device_resource_ref(), stream);

  // The callback route: functions, whatever RMM's resource classes look like.
  ashlar::SharedAllocator allocator = ashlar::SharedAllocator::OfProcess(0);
  rmm::mr::callback_memory_resource callbacks(ashlar::RmmAllocate(), ashlar::RmmDeallocate(), &allocator, &allocator);
  kept += Work(callbacks, stream);

  cudaStreamDestroy(stream);
  const ashlar_statistics statistics = allocator.Statistics();
  std::printf("RMM %d.%02d, kept in %d of %d rounds, %d requests took %d device calls\n", RMM_VERSION_MAJOR,
              RMM_VERSION_MINOR, kept, 2 * kRounds, static_cast<int>(statistics.allocations),
              static_cast<int>(statistics.device_allocations));
  return kept == 2 * kRounds ? 0 : 1;
}
