// Programs of an allocator whose pools sleep and wake, over host memory, with a fault at any call of the device: a list
// of steps, a run that looks after each at the books and at what the blocks hold, and the text of a program as C++ that
// pastes into a test.
//
//   const std::vector<SleepStep> steps = {{.kind = SleepStep::kAllocate, .bytes = 3 * kMiB}, {.kind =
//   SleepStep::kSleep}}; EXPECT_EQ(RunSleepProgram("policy:ashlar", steps), "");
//
// Pools: 0 the default one, 1 and 2 tagged "a" and "b", 3 a private one that its user keeps.
#ifndef ASHLAR_TESTS_ALLOCATOR_CORE_SLEEP_PROGRAM_H_
#define ASHLAR_TESTS_ALLOCATOR_CORE_SLEEP_PROGRAM_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ashlar/sleep.h"

namespace ashlar::core {

struct SleepStep {
  enum Kind : std::uint8_t {
    kAllocate,    // `bytes` on `stream` in `pool`; a fault, or no memory, gives no block
    kFree,        // a live block, also of a pool that sleeps
    kRecord,      // a live block is used on `stream` too
    kComplete,    // all work of the device is done
    kEmptyCache,  //
    kSleep,       // the pools of the mask `pools`, with `keep`
    kWake,        // the same
    kFault,       // the call number `which` of the device, from now, fails
  };
  Kind kind = kAllocate;
  std::uint64_t bytes = 0;
  std::uint64_t stream = 0;
  std::uint64_t pool = 0;
  std::uint64_t pools = 1;
  Keep keep = Keep::kHost;
  std::size_t which = 0;  // a live block, counted among those there are; beyond the last it goes round
};

std::vector<SleepStep> RandomSleepProgram(std::uint64_t seed, std::size_t steps);
// The first difference, with the step it came after; "" where there is none. `failed`: how often which call failed.
std::string RunSleepProgram(const std::string& conf, const std::vector<SleepStep>& steps,
                            std::map<std::string, int>* failed = nullptr);
// A part of a program that differs, as C++, and its difference.
std::string SmallSleepProgram(const std::string& conf, const std::vector<SleepStep>& steps);

}  // namespace ashlar::core

#endif  // ASHLAR_TESTS_ALLOCATOR_CORE_SLEEP_PROGRAM_H_
