#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <vector>

#include "tests/gpu/gpu_stamps.h"

namespace ashlar::tests {
namespace {

constexpr int kThreads = 256;
constexpr std::uint64_t kMostBlocks = 1024;

void Must(cudaError_t code, const char* call) {
  if (code == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s: %s\n", call, cudaGetErrorName(code), cudaGetErrorString(code));
  std::abort();
}

cudaStream_t Native(Stream stream) { return reinterpret_cast<cudaStream_t>(Handle(stream)); }
std::uint32_t* Words(std::uint64_t address) { return reinterpret_cast<std::uint32_t*>(address); }

__device__ void Spin(std::uint64_t cycles) {
  const long long begin = clock64();
  while (static_cast<std::uint64_t>(clock64() - begin) < cycles) {
  }
}

__global__ void WriteStamps(std::uint32_t* words, std::uint64_t count, std::uint32_t value, std::uint64_t spin_cycles) {
  Spin(spin_cycles);
  const std::uint64_t step = static_cast<std::uint64_t>(gridDim.x) * blockDim.x;
  for (std::uint64_t i = static_cast<std::uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    words[i] = (value * 0x9e3779b1u) ^ static_cast<std::uint32_t>(i);
  }
}

__global__ void CheckStamps(const std::uint32_t* words, std::uint64_t count, std::uint32_t value,
                            std::uint64_t spin_cycles, unsigned long long* wrong) {
  Spin(spin_cycles);
  const std::uint64_t step = static_cast<std::uint64_t>(gridDim.x) * blockDim.x;
  for (std::uint64_t i = static_cast<std::uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    if (words[i] != ((value * 0x9e3779b1u) ^ static_cast<std::uint32_t>(i))) atomicAdd(wrong, 1ull);
  }
}

unsigned GridOf(std::uint64_t count) {
  const std::uint64_t blocks = (count + kThreads - 1) / kThreads;
  return static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks);
}

class GpuStamps final : public Stamps {
 public:
  explicit GpuStamps(unsigned long long* wrong) : wrong_(wrong) {}

  ~GpuStamps() override {
    Must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    for (const cudaStream_t stream : streams_) Must(cudaStreamDestroy(stream), "cudaStreamDestroy");
    Must(cudaFree(wrong_), "cudaFree");
  }

  Stream NewStream() override {
    cudaStream_t stream = nullptr;
    Must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    const std::lock_guard<std::mutex> lock(mutex_);
    streams_.push_back(stream);
    return ToStream(stream);
  }

  void Write(Stream stream, std::uint64_t address, std::uint64_t bytes, std::uint32_t value,
             std::uint64_t spin_cycles) override {
    const std::uint64_t count = bytes / 4;
    if (count == 0) return;
    WriteStamps<<<GridOf(count), kThreads, 0, Native(stream)>>>(Words(address), count, value, spin_cycles);
    Must(cudaGetLastError(), "WriteStamps");
  }

  void Check(Stream stream, std::uint64_t address, std::uint64_t bytes, std::uint32_t value,
             std::uint64_t spin_cycles) override {
    const std::uint64_t count = bytes / 4;
    if (count == 0) return;
    CheckStamps<<<GridOf(count), kThreads, 0, Native(stream)>>>(Words(address), count, value, spin_cycles, wrong_);
    Must(cudaGetLastError(), "CheckStamps");
  }

  void Wait(Stream stream, Stream awaited) override {
    cudaEvent_t event = nullptr;
    Must(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
    Must(cudaEventRecord(event, Native(awaited)), "cudaEventRecord");
    Must(cudaStreamWaitEvent(Native(stream), event, 0), "cudaStreamWaitEvent");
    Must(cudaEventDestroy(event), "cudaEventDestroy");  // once it is done
  }

  std::uint64_t WrongWords() override {
    Must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    unsigned long long wrong = 0;
    Must(cudaMemcpy(&wrong, wrong_, sizeof(wrong), cudaMemcpyDeviceToHost), "cudaMemcpy");
    return wrong;
  }

 private:
  unsigned long long* wrong_;  // on the device
  std::mutex mutex_;
  std::vector<cudaStream_t> streams_;
};

}  // namespace

std::unique_ptr<Stamps> MakeGpuStamps() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
    cudaGetLastError();
    return nullptr;
  }
  unsigned long long* wrong = nullptr;
  Must(cudaMalloc(&wrong, sizeof(*wrong)), "cudaMalloc");
  Must(cudaMemset(wrong, 0, sizeof(*wrong)), "cudaMemset");
  Must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");  // streams of their own do not wait for it
  return std::make_unique<GpuStamps>(wrong);
}

}  // namespace ashlar::tests
