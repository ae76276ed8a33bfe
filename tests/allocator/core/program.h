// A program of requests with the settings it runs under: made at random, run on the product and on the model at once,
// made small when they differ, and printed as C++ that pastes into tests/allocator/core/regression_test.cc.
#ifndef ASHLAR_TESTS_ALLOCATOR_CORE_PROGRAM_H_
#define ASHLAR_TESTS_ALLOCATOR_CORE_PROGRAM_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "allocator/policy/options.h"

namespace ashlar::core {

struct Op {
  enum Kind {
    kAlloc,     // `value` bytes on `stream` in `pool`, known as `id`
    kFree,      // block `id`
    kRecord,    // block `id` is used on `stream`
    kComplete,  // all device work is done
    kEmptyCache,
    kConfigurePool,  // `pool`: value & 1 = use_on_oom, value & 2 = no_split
    kReleasePool,    // `pool`; later requests in it are ignored
    kSetFraction,    // `value` thousandths of the device's memory
    kBeginPool,      // default-pool requests on `stream` go to `pool`; value & 1 = a graph is captured meanwhile
    kEndPool,        // `pool`
  };
  Kind kind = kAlloc;
  std::uint32_t id = 0;
  std::uint64_t value = 0;
  std::uint64_t stream = 0;
  std::uint64_t pool = 0;  // 0 = the default pool, else {0, pool}
};

struct Program {
  policy::Compat compat = policy::Compat::kTorch210;
  std::optional<policy::FreeOrder> free_order;  // nothing = the version's own
  std::string conf;
  std::uint64_t capacity_bytes = 0;
  bool events_complete_immediately = false;
  bool descending_addresses = false;
  // Without a recorder the lanes serve requests each by itself, and what they did is added up only when it is asked
  // for: then addresses are compared after each step, everything else at the end.
  bool is_recorded = true;
  std::vector<Op> ops;
};

Program RandomProgram(std::uint64_t seed);

// Runs the program on both; the first difference in words, empty when there is none. Requests on ids that are not live
// are ignored, so any part of a program is a program.
std::string Difference(const Program& program);

// A part of the program that still differs, no single op of which can be left out.
Program Shrink(Program program);

// `Difference` as a test case named `name`.
std::string ToTestCase(const Program& program, const std::string& name);

}  // namespace ashlar::core

#endif  // ASHLAR_TESTS_ALLOCATOR_CORE_PROGRAM_H_
