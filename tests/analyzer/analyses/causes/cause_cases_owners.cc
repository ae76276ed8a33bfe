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

constexpr SeededFrame kGradCall = {"/lib/torch/autograd/__init__.py", 502, "grad"};
constexpr SeededFrame kDropoutCall = {"/lib/torch/nn/functional.py", 1425, "dropout"};
constexpr SeededFrame kAdapt = {"meta.py", 31, "adapt"};

// A meta-learner's first iteration: each round of its inner loop keeps its pass and its gradients for the outer one.
SeededInput InnerLoop(int rounds, std::uint64_t bytes) {
  SeededRun run({.capacity_bytes = static_cast<std::uint64_t>(rounds) * 12 * bytes});
  Model(run, 4, 4 * kMiB);
  for (int round = 0; round < 2 * rounds; ++round) {
    for (int layer = 0; layer < 6; ++layer) {
      run.At({{"net.py", 20 + layer, "forward"}, kCall, kAdapt, kMain});
      run.Allocate(bytes);
    }
    run.At({kGradCall, kAdapt, kMain});
    core::Block* const seed = run.Allocate(512);
    for (int layer = 0; layer < 6; ++layer) {
      run.At({});
      run.Allocate(bytes);
      core::Block* const scratch = run.Allocate(bytes);
      run.Free(scratch);
    }
    run.Free(seed);
    run.At({{"meta.py", 33, "adapt"}, kMain});
    run.Allocate(4 * kMiB);
  }
  return run.Finish();
}

// A training takes its gradients by torch.autograd.grad, and lets them go when it has the next ones.
SeededInput TrainingByGradientCalls(int steps) {
  SeededRun run({.capacity_bytes = 80 * kGiB});
  Model(run, 6, 64 * kMiB);
  Blocks gradients;
  for (int step = 0; step < steps; ++step) {
    Blocks saved;
    for (int layer = 0; layer < 6; ++layer) {
      run.At({{"net.py", 20 + layer, "forward"}, kCall, kMain});
      saved.push_back(run.Allocate(40 * kMiB));
    }
    run.At({kGradCall, kMain});
    core::Block* const seed = run.Allocate(512);
    Blocks next;
    run.At({});
    for (int layer = 0; layer < 6; ++layer) next.push_back(run.Allocate(64 * kMiB));
    run.Free(saved);
    run.Free(seed);
    run.Free(gradients);
    gradients = next;
  }
  return run.Finish();
}

// The losses of many parts of a batch are added up before one backward pass; the masks of dropout say that it trains.
SeededInput SummedLosses(int parts, std::uint64_t bytes) {
  SeededRun run({.capacity_bytes = static_cast<std::uint64_t>(parts) * 5 * bytes});
  Model(run, 4, 16 * kMiB);
  for (int part = 0; part < 2 * parts; ++part) {
    run.At({{"data.py", 9, "next_part"}, kMain});
    core::Block* const batch = run.Allocate(4 * kMiB);
    for (int layer = 0; layer < 4; ++layer) {
      run.At({{"net.py", 20 + layer, "forward"}, kCall, kMain});
      run.Allocate(bytes);
      run.At({kDropoutCall, {"net.py", 30 + layer, "forward"}, kCall, kMain});
      run.Allocate(bytes / 4);
    }
    run.Free(batch);
  }
  return run.Finish();
}

}  // namespace

std::vector<HealthyCase> HealthyOwners() {
  return {
      {"a convnet with C++ frames", [] { return ConvolutionalTraining(80 * kGiB, 5, 200 * kMiB); }},
      {"a training by torch.autograd.grad", [] { return TrainingByGradientCalls(6); }},
  };
}

std::vector<SeededCase> OwnerCases() {
  using analyses::CauseKind;
  return {
      {"a convnet does not fit", CauseKind::kActivationsSaved,
       [] { return ConvolutionalTraining(2 * kGiB, 1, 200 * kMiB); }},
      {"an inner loop of 6 rounds", CauseKind::kActivationsSaved, [] { return InnerLoop(6, 40 * kMiB); }},
      {"an inner loop of 12 rounds", CauseKind::kActivationsSaved, [] { return InnerLoop(12, 32 * kMiB); }},
      {"losses of 8 parts added up", CauseKind::kGraphKeptAlive, [] { return SummedLosses(8, 64 * kMiB); }},
  };
}

}  // namespace ashlar::tests
