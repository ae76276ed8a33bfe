// What a call costs through the CUDA runtime that this program has: nanoseconds, a line for each kind of call.
//
//   nvcc -o linked bench/linked_runtime.cu; nvcc -cudart shared -o shared bench/linked_runtime.cu
//   ./linked 200000                         # so many calls of each kind; bench/linked_runtime.py runs both over the
//   hollow device
//
// Each figure is the least of ten rounds. A call that is refused, or memory that is not counted, ends the program
// with 1.
#include <cuda_runtime.h>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

__global__ void Nothing() {}

static void Check(cudaError_t status) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "linked_runtime: %s\n", cudaGetErrorString(status));
  std::exit(1);
}

template <typename Call>
static void Measure(const char* what, long calls, Call call) {
  constexpr int kRounds = 10;
  double least = 1e30;
  for (int round = 0; round < kRounds; ++round) {
    const auto began = std::chrono::steady_clock::now();
    for (long i = 0; i < calls / kRounds; ++i) call();
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - began;
    const double each = took.count() / (calls / kRounds);
    if (each < least) least = each;
  }
  std::printf("%s: %.1f\n", what, least);
}

static void Pair() {
  void* pointer = nullptr;
  Check(cudaMalloc(&pointer, 4 << 20));
  Check(cudaFree(pointer));
}

int main(int argc, char** argv) {
  const long calls = argc > 1 ? std::atol(argv[1]) : 200'000;
  int version = 0;
  Check(cudaRuntimeGetVersion(&version));
  Check(cudaFree(nullptr));
  Measure("a kernel launch, <<<>>>", calls, [] { Nothing<<<1, 32>>>(); });
  Measure("a kernel launch, cudaLaunchKernel", calls, [] {
    Check(cudaLaunchKernel(reinterpret_cast<const void*>(&Nothing), dim3(1), dim3(32), nullptr, 0, nullptr));
  });
  Check(cudaGetLastError());
  Measure("cudaMalloc and cudaFree of 4 MiB", calls, Pair);
  std::size_t before = 0, after = 0, total = 0;
  Check(cudaMemGetInfo(&before, &total));
  std::vector<void*> live(10'000);
  for (void*& pointer : live) Check(cudaMalloc(&pointer, 4 << 20));
  Check(cudaMemGetInfo(&after, &total));
  if (before - after != live.size() << 22) {
    std::fprintf(stderr, "linked_runtime: the device has %zu bytes less for 10,000 blocks of 4 MiB\n", before - after);
    return 1;
  }
  Measure("cudaMalloc and cudaFree of 4 MiB, 10,000 live", calls, Pair);
}
