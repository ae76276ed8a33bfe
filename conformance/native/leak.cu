// Allocates in a loop and leaks one block in the fourth turn. What it held by its own count is printed.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>

static std::size_t held = 0, peak = 0;

static void* Grab(std::size_t bytes) {
  void* out = nullptr;
  if (cudaMalloc(&out, bytes) != cudaSuccess) std::exit(1);
  held += bytes;
  peak = std::max(peak, held);
  return out;
}

static void Drop(void* pointer, std::size_t bytes) {
  if (cudaFree(pointer) != cudaSuccess) std::exit(1);
  held -= bytes;
}

static void Turn(int turn) {
  const std::size_t bytes = static_cast<std::size_t>(turn + 1) << 20;
  void* work = Grab(64 << 20);
  void* result = Grab(bytes);
  Drop(work, 64 << 20);
  if (turn != 3) Drop(result, bytes);
}

int main() {
  for (int turn = 0; turn < 8; ++turn) Turn(turn);
  std::printf("peak %zu held %zu\n", peak, held);
}
