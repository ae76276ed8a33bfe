// The backend of the first GPU: memory and scratch from the allocator over it.
#include <cuda_runtime_api.h>

#include "allocator/core/caching_allocator.h"
#include "allocator/device/cuda_device.h"
#include "kernels/ops/cuda/cuda_ops.h"
#include "tests/kernels/ops_suite.h"
#include "tests/no_gpu.h"

namespace ashlar::ops {
namespace {

constexpr std::uint64_t kCublasBytes = 8 * kMiB;

class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(std::unique_ptr<device::CudaDevice> device)
      : device_(std::move(device)),
        memory_(device_.get(), policy::Options{}),
        scratch_(device_.get(), policy::Options{}),
        workspace_(&scratch_, Stream{0}),
        ops_(*MakeCudaOps(&workspace_, {.cublas_workspace_bytes = kCublasBytes})) {}
  ~CudaBackend() override {
    ops_.reset();
    for (const std::uint64_t address : addresses_) memory_.FreeAddress(address);
    memory_.EmptyCache();
    scratch_.EmptyCache();
  }

  Ops& ops() override { return *ops_; }
  std::uint64_t Allocate(std::uint64_t bytes) override {
    addresses_.push_back(*memory_.AllocateAddress(bytes, Stream{0}));
    return addresses_.back();
  }
  void Write(std::uint64_t address, const void* from, std::uint64_t bytes) override {
    EXPECT_EQ(cudaMemcpy(reinterpret_cast<void*>(address), from, bytes, cudaMemcpyHostToDevice), cudaSuccess);
  }
  void Read(void* to, std::uint64_t address, std::uint64_t bytes) override {
    EXPECT_EQ(cudaMemcpy(to, reinterpret_cast<const void*>(address), bytes, cudaMemcpyDeviceToHost), cudaSuccess);
  }
  // What cuBLAS keeps is not out.
  std::uint64_t scratch_in_use() override {
    const std::uint64_t bytes = static_cast<std::uint64_t>(scratch_.stats().allocated_bytes.all().current);
    return bytes == kCublasBytes ? 0 : bytes;
  }

 private:
  std::unique_ptr<device::CudaDevice> device_;
  core::CachingAllocator memory_;
  core::CachingAllocator scratch_;
  AllocatorWorkspace workspace_;
  std::unique_ptr<Ops> ops_;
  std::vector<std::uint64_t> addresses_;
};

}  // namespace

std::unique_ptr<Backend> MakeBackend(std::string* why_not) {
  absl::StatusOr<std::unique_ptr<device::CudaDevice>> device = device::CudaDevice::Open({.ordinal = 0});
  if (!device.ok()) {
    *why_not = WhyNoGpu(device.status());
    return nullptr;
  }
  return std::make_unique<CudaBackend>(*std::move(device));
}

}  // namespace ashlar::ops
