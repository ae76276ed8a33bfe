// Threads that allocate, stamp, hand to each other, check and free blocks, all of it in stream order and without
// waiting: what a training program does, with every block verified. The same on a GPU and on the host.
#ifndef ASHLAR_TESTS_GPU_STRESS_H_
#define ASHLAR_TESTS_GPU_STRESS_H_

#include <cstdint>

#include "allocator/core/caching_allocator.h"
#include "tests/gpu/stamps.h"

namespace ashlar::tests {

struct StressPlan {
  int threads = 4;
  int rounds = 400;               // of each thread
  std::uint64_t most_bytes = 0;   // of one block
  std::uint64_t spin_cycles = 0;  // of every fourth piece of work
  std::uint64_t seed = 1;
};

struct StressResult {
  std::uint64_t allocations = 0;
  std::uint64_t out_of_memory = 0;
  std::uint64_t handed_over = 0;  // checked and freed by another thread, on another stream
  std::uint64_t recorded = 0;     // used on a second stream, then freed at once
  std::uint64_t wrong_words = 0;
  std::uint64_t other_errors = 0;  // of the device
};

// Everything is freed afterwards.
StressResult RunStress(core::CachingAllocator& allocator, Stamps& stamps, const StressPlan& plan);

}  // namespace ashlar::tests

#endif  // ASHLAR_TESTS_GPU_STRESS_H_
