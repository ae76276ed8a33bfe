// What cub::CachingDeviceAllocator promises, as scenarios: of CUB's own class (`cub_scenarios cub`), and of Ashlar's of
// the same calls. Each says "ok" or what did not hold. The device has little memory (1 GiB) and nobody else uses it.
#include <ashlar/cub.h>

#include <cstdio>
#include <cstring>
#include <cub/util_allocator.cuh>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

int failures = 0;

void Check(bool held, const char* what) {
  std::printf("%s: %s\n", held ? "ok" : "FAILS", what);
  failures += held ? 0 : 1;
}

// A kernel that is at work until it is told to end. Where no kernel runs, the stream's work is done late (--lag).
__global__ void Wait(const volatile int* flag) {
  while (*flag == 0) {
  }
}

class StreamAtWork {
 public:
  explicit StreamAtWork(cudaStream_t stream) {
    cudaHostAlloc(&flag_, sizeof(int), cudaHostAllocMapped);
    *flag_ = 0;
    void* device_flag = nullptr;
    cudaHostGetDevicePointer(&device_flag, const_cast<int*>(flag_), 0);
    Wait<<<1, 1, 0, stream>>>(static_cast<const volatile int*>(device_flag));
  }
  ~StreamAtWork() {
    End();
    cudaDeviceSynchronize();
    cudaFreeHost(const_cast<int*>(flag_));
  }
  void End() { *flag_ = 1; }

 private:
  volatile int* flag_ = nullptr;
};

std::size_t FreeOfDevice() {
  std::size_t free_bytes = 0, total_bytes = 0;
  cudaMemGetInfo(&free_bytes, &total_bytes);
  return free_bytes;
}

std::size_t CachedBytes(cub::CachingDeviceAllocator& allocator, int device) {
  return allocator.cached_bytes[device].free;
}
std::size_t CachedBytes(ashlar::CachingDeviceAllocator& allocator, int device) { return allocator.CachedBytes(device); }

template <typename Allocator>
void* Take(Allocator& allocator, std::size_t bytes, cudaStream_t stream = nullptr) {
  void* memory = nullptr;
  const cudaError_t error = allocator.DeviceAllocate(&memory, bytes, stream);
  if (error != cudaSuccess) Check(false, cudaGetErrorName(error));
  return memory;
}

template <typename Allocator>
void Streams() {
  Allocator allocator(8u, 3u, 7u);
  cudaStream_t other;
  cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
  void* const first = Take(allocator, 999);
  {
    StreamAtWork work(nullptr);
    Check(allocator.DeviceFree(first) == cudaSuccess, "a block is freed while its stream works");
    void* const again = Take(allocator, 999);
    Check(again == first, "the same stream has it at once");
    allocator.DeviceFree(again);
    void* const of_other = Take(allocator, 999, other);
    Check(of_other != first, "another stream does not have it while the first works");
    StreamAtWork more(other);
    allocator.DeviceFree(of_other);
    work.End();
    more.End();
    cudaDeviceSynchronize();
  }
  const std::size_t free_bytes = FreeOfDevice();
  for (cudaStream_t stream : {cudaStream_t{nullptr}, other}) {
    void* const one = Take(allocator, 999, stream);
    void* const two = Take(allocator, 999, stream);
    Check(one != two && FreeOfDevice() == free_bytes, "when all is done, two blocks of a stream are from the cache");
    allocator.DeviceFree(one);
    allocator.DeviceFree(two);
    cudaDeviceSynchronize();
  }
  cudaStreamDestroy(other);
  void* const after = Take(allocator, 999);
  Check(after != nullptr && FreeOfDevice() == free_bytes, "a stream that is gone does no harm");
  allocator.DeviceFree(after);
}

template <typename Allocator>
void OfStreamsThatAreDone() {
  Allocator allocator(2u, 1u, 30u);
  cudaStream_t other;
  cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
  allocator.DeviceFree(Take(allocator, 300 * kMiB));
  cudaDeviceSynchronize();
  void* const memory = Take(allocator, 300 * kMiB, other);
  Check(memory != nullptr, "what one stream freed makes room for another on a full device");
  allocator.DeviceFree(memory);
  cudaStreamDestroy(other);
}

template <typename Allocator>
void Caching() {
  Allocator allocator(8u, 3u, 7u);
  const std::size_t before = FreeOfDevice();
  void* const small = Take(allocator, 5);
  void* const page = Take(allocator, 4096);
  Check(small != page, "two live blocks are two");
  allocator.DeviceFree(small);
  allocator.DeviceFree(page);
  Check(CachedBytes(allocator, 0) >= 4096 + 5, "what was freed is kept");
  const std::size_t free_bytes = FreeOfDevice();
  void* const live = Take(allocator, 768);
  Check(FreeOfDevice() == free_bytes, "a request is served from the cache");
  Check(allocator.FreeAllCached() == cudaSuccess, "FreeAllCached");
  allocator.DeviceFree(live);
  Check(CachedBytes(allocator, 0) > 0, "what lived through FreeAllCached is cached when it is freed");
  allocator.FreeAllCached();
  Check(CachedBytes(allocator, 0) == 0 && FreeOfDevice() == before, "FreeAllCached leaves nothing");
}

template <typename Allocator>
void Limit() {
  constexpr std::size_t kMost = 64 * kMiB;
  Allocator allocator(2u, 1u, 30u, kMost);
  void* const live = Take(allocator, 768);
  for (const std::size_t bytes : {kMost / 2, kMost, kMost + 1, 4 * kMost}) {
    allocator.DeviceFree(Take(allocator, bytes));
    Check(CachedBytes(allocator, 0) <= kMost, "no more is cached than the limit");
  }
  Check(allocator.SetMaxCachedBytes(0) == cudaSuccess, "SetMaxCachedBytes");
  allocator.DeviceFree(live);
  allocator.FreeAllCached();
  allocator.DeviceFree(Take(allocator, 8 * kMiB));
  Check(CachedBytes(allocator, 0) == 0, "a limit of nothing keeps nothing");
}

template <typename Allocator>
void OutOfMemory() {
  Allocator allocator(2u, 1u, 30u);
  std::vector<void*> many;
  for (int i = 0; i < 20; ++i) many.push_back(Take(allocator, 16 * kMiB));
  for (void* const memory : many) allocator.DeviceFree(memory);
  void* const large = Take(allocator, 512 * kMiB);
  Check(large != nullptr, "the cache makes room for a larger request");
  void* memory = &memory;
  Check(allocator.DeviceAllocate(&memory, 512 * kMiB) == cudaErrorMemoryAllocation, "what does not fit is refused");
  Check(memory == nullptr, "and no address is told");
  cudaGetLastError();
  void* const fits = Take(allocator, kMiB);
  Check(fits != nullptr, "what fits is served after that");
  allocator.DeviceFree(fits);
  allocator.DeviceFree(large);
}

template <typename Allocator>
void Devices() {
  int devices = 0;
  cudaGetDeviceCount(&devices);
  if (devices < 2) return;
  Allocator allocator(8u, 3u, 7u);
  void *first = nullptr, *second = nullptr;
  Check(allocator.DeviceAllocate(1, &first, 768) == cudaSuccess, "another device than the current one serves");
  Check(allocator.DeviceFree(1, first) == cudaSuccess, "and takes back");
  allocator.DeviceAllocate(1, &second, 768);
  Check(first == second, "each device reuses its own");
  allocator.DeviceFree(1, second);
  Check(CachedBytes(allocator, 1) > 0 && CachedBytes(allocator, 0) == 0, "each device has a cache");
  int current = -1;
  cudaGetDevice(&current);
  Check(current == 0, "the current device stays");
}

template <typename Allocator>
void Threads() {
  Allocator allocator(8u, 3u, 7u);
  void* const memory = Take(allocator, 4096);
  std::thread([&] { Check(allocator.DeviceFree(memory) == cudaSuccess, "another thread may free"); }).join();
}

template <typename Allocator>
void All() {
  Streams<Allocator>();
  OfStreamsThatAreDone<Allocator>();
  Caching<Allocator>();
  Limit<Allocator>();
  OutOfMemory<Allocator>();
  Devices<Allocator>();
  Threads<Allocator>();
  { Allocator by_default; }
  { Allocator quiet(true, false); }
}

}  // namespace

int main(int argc, char** argv) {
  cudaFree(nullptr);
  const bool is_cubs = argc > 1 && std::strcmp(argv[1], "cub") == 0;
  is_cubs ? All<cub::CachingDeviceAllocator>() : All<ashlar::CachingDeviceAllocator>();
  std::printf("%d of the scenarios' checks failed\n", failures);
  return failures == 0 ? 0 : 1;
}
