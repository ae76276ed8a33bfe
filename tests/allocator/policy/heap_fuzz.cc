// Any bytes as a program for policy::Heap, run beside the slow heap. What differs is printed as C++ that pastes into
// heap_test.cc. The first byte chooses the settings; each further group of four is a step.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/allocator/policy/heap_program.h"

namespace ashlar::policy {
namespace {

HeapProgramOptions OptionsOf(std::uint8_t byte) {
  static constexpr std::uint64_t kLimits[] = {~std::uint64_t{0}, 20u << 20, 40u << 20, 3u << 20};
  return {.max_split_size_bytes = kLimits[byte % 4], .expandable_segments = (byte & 4) != 0};
}

HeapStep StepOf(const std::uint8_t* data) {
  static constexpr HeapStep::Kind kKinds[] = {HeapStep::kAllocate, HeapStep::kAllocate,   HeapStep::kAllocate,
                                              HeapStep::kFree,     HeapStep::kFree,       HeapStep::kWait,
                                              HeapStep::kWaitOver, HeapStep::kReturnCache};
  HeapStep step;
  step.kind = kKinds[data[0] % 8];
  step.stream = data[0] / 8 % 3;
  step.pool = data[0] / 32 % 3;
  step.which = data[1];
  const std::uint64_t number = data[1] + 256u * data[2];
  step.bytes = 1 + (data[3] % 2 == 0 ? number * 32 : number * 768);
  return step;
}

}  // namespace
}  // namespace ashlar::policy

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ashlar::policy;
  if (size == 0) return 0;
  constexpr std::size_t kMostSteps = 500;
  std::vector<HeapStep> steps;
  for (std::size_t at = 1; at + 4 <= size && steps.size() < kMostSteps; at += 4) steps.push_back(StepOf(data + at));
  const HeapProgramOptions options = OptionsOf(data[0]);
  if (RunHeapProgram(options, steps).empty()) return 0;
  std::fprintf(stderr, "%s", SmallHeapProgram(options, steps).c_str());
  std::abort();
}
