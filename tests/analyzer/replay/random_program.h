// Random programs for property tests of replays, and the smallest program that still fails.
#ifndef ASHLAR_TESTS_ANALYZER_REPLAY_RANDOM_PROGRAM_H_
#define ASHLAR_TESTS_ANALYZER_REPLAY_RANDOM_PROGRAM_H_

#include <cstdint>
#include <functional>

#include "allocator/base/rng.h"
#include "tests/analyzer/replay/recorder.h"

namespace ashlar::replay {

// What a random program may do.
struct ProgramShape {
  std::size_t op_count = 120;
  std::uint64_t streams = 1;
  std::uint64_t pools = 1;  // the default one and pools - 1 private ones
  bool releases_pools = false;
  bool has_overflow_pool = false;  // the first private pool is used_on_oom
  std::uint64_t empty_cache_in_1000 = 10;
  std::uint64_t record_stream_in_1000 = 0;
  std::uint64_t max_bytes = 48 * kMiB;
};

// Appends ops to `program`, whose settings are kept.
void AddRandomOps(const ProgramShape& shape, Rng& rng, Program& program);

// Takes ops out as long as `fails` stays true.
Program Shrink(Program program, const std::function<bool(const Program&)>& fails);

}  // namespace ashlar::replay

#endif  // ASHLAR_TESTS_ANALYZER_REPLAY_RANDOM_PROGRAM_H_
