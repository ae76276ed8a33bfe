#include "bench/rival_gpu.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "absl/strings/str_cat.h"

namespace ashlar::bench {
namespace {

void Must(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s: %s\n", call, cudaGetErrorName(error), cudaGetErrorString(error));
  std::exit(1);
}

std::uint64_t FreeBytes() {
  std::size_t free = 0, total = 0;
  Must(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return free;
}

}  // namespace

absl::Status FindGpu() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaSuccess && count > 0) return absl::OkStatus();
  cudaGetLastError();
  return absl::UnavailableError(absl::StrCat("cudaGetDeviceCount: ", cudaGetErrorName(error)));
}

bool GpuHolds(std::uint64_t bytes) { return FreeBytes() >= bytes; }

struct RivalGpu::Impl {
  GpuAllocator kind;
  bool is_measured;
  std::vector<cudaStream_t> streams;
  cudaMemPool_t pool = nullptr;
  std::uint64_t free_at_start = 0;
  std::uint64_t peak_bytes = 0;
  std::uint64_t calls = 0;

  cudaStream_t Native(Stream stream) {
    while (streams.size() <= Handle(stream)) {
      cudaStream_t made = nullptr;
      Must(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
      streams.push_back(made);
    }
    return streams[Handle(stream)];
  }
};

RivalGpu::RivalGpu(GpuAllocator kind, bool is_measured) : impl_(new Impl{kind, is_measured, {}}) {
  Must(cudaSetDevice(0), "cudaSetDevice");
  if (kind == GpuAllocator::kPool) {
    cudaMemPoolProps properties = {};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location = {cudaMemLocationTypeDevice, 0};
    Must(cudaMemPoolCreate(&impl_->pool, &properties), "cudaMemPoolCreate");
    std::uint64_t keep = ~std::uint64_t{0};
    Must(cudaMemPoolSetAttribute(impl_->pool, cudaMemPoolAttrReleaseThreshold, &keep), "cudaMemPoolSetAttribute");
  }
  impl_->Native(Stream{0});
  impl_->free_at_start = FreeBytes();
}

RivalGpu::~RivalGpu() {
  Must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  if (impl_->pool != nullptr) Must(cudaMemPoolDestroy(impl_->pool), "cudaMemPoolDestroy");
  for (const cudaStream_t stream : impl_->streams) Must(cudaStreamDestroy(stream), "cudaStreamDestroy");
}

std::uint64_t RivalGpu::Allocate(std::uint64_t bytes, Stream stream) {
  void* address = nullptr;
  const bool is_pool = impl_->kind == GpuAllocator::kPool;
  const cudaError_t error = is_pool ? cudaMallocFromPoolAsync(&address, bytes, impl_->pool, impl_->Native(stream))
                                    : cudaMalloc(&address, bytes);
  ++impl_->calls;
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    return 0;
  }
  Must(error, is_pool ? "cudaMallocFromPoolAsync" : "cudaMalloc");
  if (impl_->is_measured && !is_pool) {
    impl_->peak_bytes = std::max(impl_->peak_bytes, impl_->free_at_start - std::min(impl_->free_at_start, FreeBytes()));
  }
  return reinterpret_cast<std::uint64_t>(address);
}

void RivalGpu::Free(std::uint64_t address, Stream stream) {
  void* const block = reinterpret_cast<void*>(address);
  ++impl_->calls;
  if (impl_->kind == GpuAllocator::kPool) {
    Must(cudaFreeAsync(block, impl_->Native(stream)), "cudaFreeAsync");
  } else {
    Must(cudaFree(block), "cudaFree");
  }
}

std::uint64_t RivalGpu::peak_reserved_bytes() const {
  if (impl_->kind == GpuAllocator::kMalloc) return impl_->peak_bytes;
  std::uint64_t bytes = 0;
  Must(cudaMemPoolGetAttribute(impl_->pool, cudaMemPoolAttrReservedMemHigh, &bytes), "cudaMemPoolGetAttribute");
  return bytes;
}

std::optional<std::uint64_t> RivalGpu::driver_calls() const {
  if (impl_->kind == GpuAllocator::kPool) return std::nullopt;
  return impl_->calls;
}

}  // namespace ashlar::bench
