// Programs for policy::Heap: a list of steps that any heap can run, a run that compares it after every step with a slow
// heap that shares no code with it, and the text of a program as C++ that pastes into a test.
//
//   const std::vector<HeapStep> steps = {{.kind = HeapStep::kAllocate, .bytes = 3 * kMiB}, {.kind = HeapStep::kFree}};
//   EXPECT_EQ(RunHeapProgram({}, steps), "");
//
// Where segments are expandable, whose growth the slow heap does not know, a run checks what must hold of any heap: its
// own Validate(), and that no two live blocks share a byte.
#ifndef ASHLAR_TESTS_ALLOCATOR_POLICY_HEAP_PROGRAM_H_
#define ASHLAR_TESTS_ALLOCATOR_POLICY_HEAP_PROGRAM_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ashlar::policy {

struct HeapProgramOptions {
  std::uint64_t max_split_size_bytes = ~std::uint64_t{0};
  bool expandable_segments = false;
};

struct HeapStep {
  enum Kind : std::uint8_t {
    kAllocate,     // a request; a new segment where no free block serves it
    kFree,         // a live block
    kWait,         // a live block is freed, and waits for events
    kWaitOver,     // a waiting block is free
    kReturnCache,  // every segment that is wholly free leaves the heap
  };
  Kind kind = kAllocate;
  std::uint64_t bytes = 0;   // of a request, 1 or more
  std::uint64_t stream = 0;  // of a request
  std::uint64_t pool = 0;    // of a request: 0 the default pool, 1 a private one, 2 a private one that does not split
  std::size_t which = 0;     // the block, counted among those there are; beyond the last it goes round
};

// The first difference, with the step it came after; "" where there is none.
std::string RunHeapProgram(const HeapProgramOptions& options, const std::vector<HeapStep>& steps);

// Of a program that differs: the difference of a small part of it, and that part as C++ that pastes into heap_test.cc.
std::string SmallHeapProgram(const HeapProgramOptions& options, const std::vector<HeapStep>& steps);

// "{.kind = HeapStep::kAllocate, .bytes = 512}, ..."
std::string HeapProgramText(const HeapProgramOptions& options, const std::vector<HeapStep>& steps);

}  // namespace ashlar::policy

#endif  // ASHLAR_TESTS_ALLOCATOR_POLICY_HEAP_PROGRAM_H_
