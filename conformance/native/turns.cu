// Uses Thrust as programs do that never thought of memory: each turn makes its vectors anew, and sorting and scanning
// take scratch of their own. What it asked for by its own count is printed.
#include <thrust/device_vector.h>
#include <thrust/scan.h>
#include <thrust/sort.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>

static void Turn(std::size_t count) {
  thrust::device_vector<int> keys(count);
  thrust::device_vector<float> values(count / 2);
  thrust::sort(keys.begin(), keys.end());
  thrust::inclusive_scan(values.begin(), values.end(), values.begin());
}

int main(int argc, char** argv) {
  const int turns = argc > 1 ? std::atoi(argv[1]) : 100;
  std::size_t bytes = 0;
  for (int turn = 0; turn < turns; ++turn) {
    const std::size_t count = static_cast<std::size_t>(1 + turn % 5) << 18;
    Turn(count);
    bytes += count * sizeof(int) + count / 2 * sizeof(float);
  }
  std::size_t free_bytes = 0, total_bytes = 0;
  if (cudaMemGetInfo(&free_bytes, &total_bytes) != cudaSuccess || cudaGetLastError() != cudaSuccess) return 1;
  std::printf("turns %d bytes %zu free %zu of %zu\n", turns, bytes, free_bytes, total_bytes);
}
