// A library that takes device memory, built twice under two names.
#include <cstddef>

#include "tests/hollow/client/cuda_calls.h"

using namespace ashlar::hollow::client;  // NOLINT: what it calls is declared there

extern "C" {

__attribute__((visibility("default"))) void* ASHLAR_TEST_TAKE(std::size_t bytes) {
  void* out = nullptr;
  return cudaMalloc(&out, bytes) == 0 ? out : nullptr;
}

__attribute__((visibility("default"))) void* ASHLAR_TEST_TAKE_OF_POOL(std::size_t bytes) {
  void* out = nullptr;
  return cudaMallocAsync(&out, bytes, nullptr) == 0 ? out : nullptr;
}

}  // extern "C"
