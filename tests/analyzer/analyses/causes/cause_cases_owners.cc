// Programs in whose stacks somebody stands who did not make the block.
#include "tests/analyzer/analyses/causes/cause_cases.h"
#include "tests/analyzer/analyses/causes/training_parts.h"

namespace ashlar::tests {
namespace {

constexpr SeededFrame kConvolve = {"??", 0, "at::native::cudnn_convolution(at::Tensor const&, at::Tensor const&)"};
constexpr SeededFrame kMakeTensor = {"??", 0, "at::detail::empty_cuda(c10::ArrayRef<long>, c10::ScalarType)"};
constexpr SeededFrame kCacheMalloc = {"??", 0,
                                      "c10::cuda::CUDACachingAllocator::Native::DeviceCachingAllocator::malloc"};
constexpr SeededFrame kUnwind = {"??", 0, "torch::unwind::unwind()"};
constexpr SeededFrame kGetWorkspace = {"??", 0,
                                       "at::native::(anonymous namespace)::Workspace::Workspace(unsigned long)"};
constexpr SeededFrame kConv2d = {"/lib/torch/nn/modules/conv.py", 540, "_conv_forward"};

// A pass of convolutions, recorded with C++ frames: each makes its result, and scratch of the library's that goes.
void Convolve(SeededRun& run, int layers, std::uint64_t bytes, Blocks& saved) {
  for (int layer = 0; layer < layers; ++layer) {
    run.At({kUnwind, kCacheMalloc, kMakeTensor, kConvolve, kConv2d, {"net.py", 20 + layer, "forward"}, kCall, kMain});
    saved.push_back(run.Allocate(bytes));
    run.At({kUnwind, kCacheMalloc, kGetWorkspace, kConvolve, kConv2d, {"net.py", 20 + layer, "forward"}, kCall, kMain});
    run.Free(run.Allocate(bytes / 4));
  }
}

SeededInput ConvolutionalTraining(std::uint64_t capacity_bytes, int steps, std::uint64_t bytes) {
  SeededRun run({.capacity_bytes = capacity_bytes});
  Model(run, 12, 8 * kMiB);
  for (int step = 0; step < steps; ++step) {
    Blocks saved;
    Blocks gradients;
    Convolve(run, 12, bytes, saved);
    while (!saved.empty()) Backward(run, 1, 8 * kMiB, saved, gradients);
    Optimize(run, 12, 8 * kMiB);
    run.Free(gradients);
  }
  return run.Finish();
}

}  // namespace

std::vector<HealthyCase> HealthyOwners() {
  return {
      {"a convnet with C++ frames", [] { return ConvolutionalTraining(80 * kGiB, 5, 200 * kMiB); }},
  };
}

std::vector<SeededCase> OwnerCases() {
  using analyses::CauseKind;
  return {
      {"a convnet does not fit", CauseKind::kActivationsSaved,
       [] { return ConvolutionalTraining(2 * kGiB, 1, 200 * kMiB); }},
  };
}

}  // namespace ashlar::tests
