// How often an allocator went to the device although it held enough, and when it returned memory in bursts.
#ifndef ASHLAR_ANALYZER_ANALYSES_STATE_DEVICE_TRAFFIC_H_
#define ASHLAR_ANALYZER_ANALYSES_STATE_DEVICE_TRAFFIC_H_

#include <cstdint>
#include <vector>

#include "allocator/policy/options.h"
#include "allocator/trace/event.h"
#include "analyzer/timeline/timeline.h"

namespace ashlar::analyses {

// The times an allocator obtained memory from the device although it held enough free memory somewhere, and where that
// lay: with its own stream but in pieces, with another stream, with the other class of sizes, in another pool.
//
//   request 64 MiB on stream B:  free with B 20 MiB + 30 MiB | with A 200 MiB   -> a new segment of 64 MiB
//
// A failed request counts too: it would have obtained memory. Pure functions; sizes are bytes.
struct FreeRuns {
  std::uint64_t bytes = 0;    // all of them
  std::uint64_t largest = 0;  // the largest contiguous one
};

struct TrafficGrowth {
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
std::vector<TrafficGrowth> AvoidableGrowths(const timeline::Timeline& timeline, const policy::Options& options);

// The times an allocator returned cached segments to the device, and whether it had to: a retry returns the cache
// because no free piece of it serves the request, torch.cuda.empty_cache() returns what would have served.
//
//   free 64, free 32, obtain 128 for a request of 128   -> a retry
//   free 64, free 32, obtain 32 for a request of 32     -> the program's own wish: a piece of 64 was there
//
// Pure functions; sizes are bytes.

bool IsReturn(const trace::Event& event);    // a segment went back to the device, or a part of one
bool IsObtained(const trace::Event& event);  // one came from it

// Returns in a row, and what was obtained from then on up to the next ones.
struct ReturnBurst {
  timeline::EventIndex begin = 0;
  timeline::EventIndex end = 0;  // the first event after it
  std::uint64_t bytes = 0;
  std::uint64_t calls = 0;
  std::uint64_t regained_bytes = 0;
  std::uint64_t regained_calls = 0;
  bool is_retry = false;
};

// In order.
std::vector<ReturnBurst> FindReturnBursts(const timeline::Timeline& timeline, const policy::Options& options);

}  // namespace ashlar::analyses

#endif  // ASHLAR_ANALYZER_ANALYSES_STATE_DEVICE_TRAFFIC_H_
