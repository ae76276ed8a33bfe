// Memory by CCCL's cuda::mr, from 3.0 (CUDA 13.0) to today: numbers go to the device and back a hundred times, in
// memory of a resource of cudaMalloc (`cuda_mr plain`) and of Ashlar's.
//
//   nvcc -std=c++17 -cudart shared -I PREFIX/include cuda_mr.cu -L PREFIX/lib -lashlar -o cuda_mr
#ifndef LIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE
#define LIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE  // up to 3.0 cuda::mr is behind it
#endif
#include <ashlar/cuda_mr.h>

#if CCCL_VERSION >= 3002000
#include <cuda/buffer>
#endif
#if CCCL_VERSION >= 3001000
#include <cub/device/device_reduce.cuh>
#endif

#include <cstdio>
#include <cstring>
#include <numeric>
#include <vector>

namespace {

constexpr int kRounds = 100;

// What programs have that bring no allocator.
struct Plain {
  void* allocate_sync(std::size_t bytes, std::size_t = 256) {
    void* memory = nullptr;
    ashlar::ThrowUnlessOk("cudaMalloc", cudaMalloc(&memory, bytes));
    return memory;
  }
  void deallocate_sync(void* memory, std::size_t, std::size_t = 256) noexcept { cudaFree(memory); }
  void* allocate(cuda::stream_ref, std::size_t bytes, std::size_t = 256) { return allocate_sync(bytes); }
  void deallocate(cuda::stream_ref, void* memory, std::size_t bytes, std::size_t = 256) noexcept {
    deallocate_sync(memory, bytes);
  }
  [[maybe_unused]] friend bool operator==(const Plain&, const Plain&) noexcept { return true; }
  [[maybe_unused]] friend bool operator!=(const Plain&, const Plain&) noexcept { return false; }
  [[maybe_unused]] friend void get_property(const Plain&, cuda::mr::device_accessible) noexcept {}
};

#if CCCL_VERSION >= 3002000
template <typename Resource>
std::vector<int> CopyThere(const std::vector<int>& in, Resource resource, cuda::stream_ref stream) {
  const auto buffer = cuda::make_buffer<int, cuda::mr::device_accessible>(stream, resource, in);  // CCCL's container
  std::vector<int> out(in.size());
  cudaMemcpyAsync(out.data(), buffer.data(), in.size() * sizeof(int), cudaMemcpyDeviceToHost, stream.get());
  cudaStreamSynchronize(stream.get());
  return out;
}
#else
template <typename Resource>
std::vector<int> CopyThere(const std::vector<int>& in, Resource resource, cuda::stream_ref stream) {
  const std::size_t bytes = in.size() * sizeof(int);
  void* const memory = resource.allocate(stream, bytes, alignof(int));
  cudaMemcpyAsync(memory, in.data(), bytes, cudaMemcpyHostToDevice, stream.get());
  std::vector<int> out(in.size());
  cudaMemcpyAsync(out.data(), memory, bytes, cudaMemcpyDeviceToHost, stream.get());
  cudaStreamSynchronize(stream.get());
  resource.deallocate(stream, memory, bytes, alignof(int));
  return out;
}
#endif

// The scratch of an algorithm of CUB's comes from the resource too.
template <typename Resource>
bool Sum([[maybe_unused]] Resource resource, [[maybe_unused]] cuda::stream_ref stream,
         [[maybe_unused]] std::size_t count) {
#if CCCL_VERSION >= 3001000
  int* const in = static_cast<int*>(resource.allocate(stream, count * sizeof(int), alignof(int)));
  int* const out = static_cast<int*>(resource.allocate(stream, sizeof(int), alignof(int)));
  const auto environment =
      cuda::std::execution::env{stream, cuda::std::execution::prop{cuda::mr::get_memory_resource, resource}};
  const bool is_done = cub::DeviceReduce::Sum(in, out, static_cast<int>(count), environment) == cudaSuccess;
  resource.deallocate(stream, out, sizeof(int), alignof(int));
  resource.deallocate(stream, in, count * sizeof(int), alignof(int));
  return is_done;
#else
  return true;
#endif
}

template <typename Resource>
int Work(Resource resource) {
  cudaStream_t stream;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  int kept = 0;
  for (int round = 1; round <= kRounds; ++round) {
    std::vector<int> in(1000 * round);
    std::iota(in.begin(), in.end(), round);
    kept += CopyThere(in, resource, stream) == in && Sum(resource, stream, in.size()) ? 1 : 0;
  }
  cudaStreamDestroy(stream);
  return kept;
}

}  // namespace

int main(int argc, char** argv) {
  const bool is_plain = argc > 1 && std::strcmp(argv[1], "plain") == 0;
  cudaFree(nullptr);
  const int kept = is_plain ? Work(Plain()) : Work(ashlar::CudaResource());
  std::printf("CCCL %d, kept in %d of %d rounds\n", CCCL_VERSION, kept, kRounds);
  return kept == kRounds ? 0 : 1;
}
