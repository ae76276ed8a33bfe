#include "kernels/workloads/cuda/cuda_machine.h"

#include <cuda_runtime_api.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/device/cuda_device.h"
#include "kernels/ops/cuda/cuda_ops.h"

namespace ashlar::kernels {
namespace {

constexpr int kOrdinal = 0;

// "cudaMemcpyAsync: cudaErrorIllegalAddress: an illegal memory access was encountered".
absl::Status ToStatus(const char* call, cudaError_t error) {
  if (error == cudaSuccess) return absl::OkStatus();
  cudaGetLastError();  // it is told here, and to nobody else
  return absl::InternalError(absl::StrCat(call, ": ", cudaGetErrorName(error), ": ", cudaGetErrorString(error)));
}

cudaStream_t Native(Stream stream) { return reinterpret_cast<cudaStream_t>(Handle(stream)); }

class CudaMachine final : public Machine {
 public:
  explicit CudaMachine(std::unique_ptr<device::CudaDevice> device) : device_(std::move(device)) {}
  ~CudaMachine() override {
    for (const Stream stream : streams_) cudaStreamDestroy(Native(stream));
  }

  device::Device& device() override { return *device_; }

  absl::StatusOr<Stream> NewStream() override {
    cudaStream_t stream = nullptr;
    absl::Status status =
        ToStatus("cudaStreamCreateWithFlags", cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    if (!status.ok()) return status;
    streams_.push_back(ToStream(stream));
    return streams_.back();
  }

  absl::StatusOr<std::unique_ptr<ops::Ops>> MakeOps(ops::Workspace* workspace, Stream stream) override {
    return ops::MakeCudaOps(workspace, {.stream = stream});
  }

  // Which side is the device's, the runtime sees by the addresses. Pageable memory may be read after the call that
  // queues the copy, so that is waited for.
  absl::Status Copy(void* to, const void* from, std::size_t bytes, Stream stream) override {
    if (bytes == 0) return absl::OkStatus();
    absl::Status status =
        ToStatus("cudaMemcpyAsync", cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, Native(stream)));
    if (!status.ok()) return status;
    return ToStatus("cudaStreamSynchronize", cudaStreamSynchronize(Native(stream)));
  }

  absl::Status Finish() override { return ToStatus("cudaDeviceSynchronize", cudaDeviceSynchronize()); }

 private:
  std::unique_ptr<device::CudaDevice> device_;
  std::vector<Stream> streams_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Machine>> OpenCudaMachine() {
  absl::StatusOr<std::unique_ptr<device::CudaDevice>> device = device::CudaDevice::Open({.ordinal = kOrdinal});
  if (!device.ok()) return device.status();
  if (absl::Status status = ToStatus("cudaSetDevice", cudaSetDevice(kOrdinal)); !status.ok()) return status;
  return std::make_unique<CudaMachine>(*std::move(device));
}

}  // namespace ashlar::kernels
