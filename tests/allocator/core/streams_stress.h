// Threads that allocate, free, hand over and record blocks on 1 to 100,000 streams, and accounting that adds up at the
// end: every thread's own counts against the allocator's statistics, the heap's invariants, and nothing left of any
// stream.
#ifndef ASHLAR_TESTS_ALLOCATOR_CORE_STREAMS_STRESS_H_
#define ASHLAR_TESTS_ALLOCATOR_CORE_STREAMS_STRESS_H_

#include <cstdint>
#include <string>

namespace ashlar::core {

struct StreamsStressPlan {
  int threads = 8;
  int operations = 2000;  // of each thread
  std::uint64_t streams = 100;
  std::uint64_t capacity_bytes = 0;
  bool reports_failures = true;  // each looks at all that there is: too long where failures come by the 10,000
};

struct StreamsStressResult {
  std::uint64_t allocations = 0;
  std::uint64_t out_of_memory = 0;
  std::string wrong;  // what does not add up; empty when all does
};

StreamsStressResult RunStreamsStress(const StreamsStressPlan& plan);

}  // namespace ashlar::core

#endif  // ASHLAR_TESTS_ALLOCATOR_CORE_STREAMS_STRESS_H_
