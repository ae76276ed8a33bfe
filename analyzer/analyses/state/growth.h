// The times an allocator obtained memory from the device although it held enough free memory somewhere, and where that
// lay: with its own stream but in pieces, with another stream, with the other class of sizes, in another pool.
//
//   request 64 MiB on stream B:  free with B 20 MiB + 30 MiB | with A 200 MiB   -> a new segment of 64 MiB
//
// A failed request counts too: it would have obtained memory. Pure functions; sizes are bytes.
#ifndef ASHLAR_ANALYZER_ANALYSES_STATE_GROWTH_H_
#define ASHLAR_ANALYZER_ANALYSES_STATE_GROWTH_H_

#include <cstdint>
#include <vector>

#include "allocator/policy/options.h"
#include "analyzer/timeline/timeline.h"

namespace ashlar::analyses {

struct FreeRuns {
  std::uint64_t bytes = 0;    // all of them
  std::uint64_t largest = 0;  // the largest contiguous one
};

struct Growth {
  timeline::EventIndex event = timeline::kNever;          // the first event of obtaining it; of a failure, the failure
  timeline::EventIndex request_event = timeline::kNever;  // the allocation it served
  bool is_failure = false;
  std::uint64_t bytes = 0;          // obtained; of a failure, the segment it needed
  std::uint64_t request_bytes = 0;  // the block's size, or the rounded request of a failure
  trace::StackId stack = trace::kNoStack;
  Stream stream{};
  PoolId pool = {};
  bool is_small_pool = false;
  // Free memory just before, by what keeps the request from it.
  FreeRuns own = {};            // nothing: same stream, class and pool
  FreeRuns other_streams = {};  // only the stream
  FreeRuns other_class = {};    // the class of sizes, perhaps the stream too
  FreeRuns other_pools = {};    // the pool
};

// In order of events. Looking at one costs as much as the whole state, so of a long trace only the largest are looked
// at, as many as keep the whole below a fixed cost.
std::vector<Growth> AvoidableGrowths(const timeline::Timeline& timeline, const policy::Options& options);

}  // namespace ashlar::analyses

#endif  // ASHLAR_ANALYZER_ANALYSES_STATE_GROWTH_H_
