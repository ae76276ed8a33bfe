// What RMM's headers do with Ashlar's resource, without its library's own CUDA runtime: references and owners of it,
// its callback resource, its adaptors and its map of resources. Each line says "ok" or what did not hold.
#include <ashlar/rmm.h>

#include <cstdio>
#include <cstring>
#include <numeric>
#include <rmm/mr/callback_memory_resource.hpp>
#include <rmm/mr/failure_callback_resource_adaptor.hpp>
#include <rmm/mr/statistics_resource_adaptor.hpp>
#include <type_traits>
#include <vector>

namespace {

int failures = 0;

void Check(bool held, const char* what) {
  std::printf("%s: %s\n", held ? "ok" : "FAILS", what);
  failures += held ? 0 : 1;
}

// Numbers go to the device and back in memory of `resource`; whether they always came back as they were.
template <typename Resource>
bool Keeps(Resource& resource, cudaStream_t stream) {
  bool keeps = true;
  for (int round = 1; round <= 100; ++round) {
    std::vector<int> in(static_cast<std::size_t>(1000 * round));
    std::iota(in.begin(), in.end(), round);
    std::vector<int> out(in.size());
    const std::size_t bytes = in.size() * sizeof(int);
    void* const memory = resource.allocate(stream, bytes, 256);
    cudaMemcpyAsync(memory, in.data(), bytes, cudaMemcpyHostToDevice, stream);
    cudaMemcpyAsync(out.data(), memory, bytes, cudaMemcpyDeviceToHost, stream);
    cudaStreamSynchronize(stream);
    resource.deallocate(stream, memory, bytes, 256);
    keeps = keeps && in == out;
  }
  return keeps;
}

template <typename Resource>
bool ThrowsRmmsOutOfMemory(Resource& resource, cudaStream_t stream) {
  try {
    (void)resource.allocate(stream, std::size_t{1} << 50, 256);
  } catch (const rmm::out_of_memory& error) {
    return std::strstr(error.what(), "1024.00 TiB requested") != nullptr;
  }
  return false;
}

// RMM asks this whether to try again.
bool GiveRoom(std::size_t, void* asked) { return ++*static_cast<int*>(asked) < 3; }

#ifdef ASHLAR_RMM_HAS_ANY_RESOURCE
using Owner = cuda::mr::any_resource<cuda::mr::device_accessible>;
Owner OwnerOf(ashlar::RmmResource& resource) { return Owner(resource); }
#else
using Owner = rmm::device_async_resource_ref;
Owner OwnerOf(ashlar::RmmResource& resource) { return Owner(resource); }
#endif

void OfAdaptors(ashlar::RmmResource& resource, cudaStream_t stream) {
  int asked = 0;
#ifdef ASHLAR_RMM_HAS_ANY_RESOURCE
  rmm::mr::failure_callback_resource_adaptor<rmm::out_of_memory> retrying(OwnerOf(resource), &GiveRoom, &asked);
  rmm::mr::statistics_resource_adaptor counting(OwnerOf(resource));
#else
  rmm::mr::failure_callback_resource_adaptor<ashlar::RmmResource, rmm::out_of_memory> retrying(resource, &GiveRoom,
                                                                                               &asked);
  rmm::mr::statistics_resource_adaptor<ashlar::RmmResource> counting(resource);
#endif
  Check(ThrowsRmmsOutOfMemory(retrying, stream) && asked == 3, "RMM's failure callback is asked, and tries again");
  Check(Keeps(counting, stream), "RMM's statistics count on it");
  const auto bytes = counting.get_bytes_counter();
  Check(bytes.value == 0 && bytes.peak == 400000, "and add up");
}

}  // namespace

int main() {
  cudaFree(nullptr);
  cudaStream_t stream = nullptr;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  ashlar::SharedAllocator allocator = ashlar::SharedAllocator::OfProcess(0);
  ashlar::RmmResource resource(allocator);

  Owner owner = OwnerOf(resource);
  Check(Keeps(owner, stream), "RMM's owner of a resource holds it");
  rmm::device_async_resource_ref ref(resource);
  Check(Keeps(ref, stream), "rmm::device_async_resource_ref holds it");
  Check(ThrowsRmmsOutOfMemory(ref, stream), "out of memory is rmm::out_of_memory");
  ashlar::RmmResource same(allocator);
  ashlar::RmmResource other(ashlar::SharedAllocator::OpenHost(1 << 20));
  Check(resource == same && resource != other, "resources of one allocator are equal, of two they are not");

  rmm::mr::callback_memory_resource callbacks(ashlar::RmmAllocate(), ashlar::RmmDeallocate(), &allocator, &allocator);
  Check(Keeps(callbacks, stream), "the callback route");
  Check(ThrowsRmmsOutOfMemory(callbacks, stream), "and its out of memory");
  OfAdaptors(resource, stream);
#if RMM_VERSION_MAJOR * 100 + RMM_VERSION_MINOR < 2610  // from there on the map itself calls the library's runtime
  ashlar::UseInRmm(0);
  auto of_device = rmm::mr::get_per_device_resource_ref(rmm::cuda_device_id{0});
  const auto before = allocator.Statistics().allocations;
  Check(Keeps(of_device, stream) && allocator.Statistics().allocations == before + 100, "RMM's resource of the device");
#endif
  cudaStreamDestroy(stream);
  const ashlar_statistics statistics = allocator.Statistics();
  Check(statistics.allocated_bytes == 0 && statistics.allocations == statistics.frees, "nothing is left");
  std::printf("RMM %d.%02d: %d requests took %d device calls; %d checks failed\n", RMM_VERSION_MAJOR, RMM_VERSION_MINOR,
              static_cast<int>(statistics.allocations), static_cast<int>(statistics.device_allocations), failures);
  return failures == 0 ? 0 : 1;
}
