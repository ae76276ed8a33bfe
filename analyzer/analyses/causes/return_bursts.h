// The times an allocator returned cached segments to the device, and whether it had to: a retry returns the cache
// because no free piece of it serves the request, torch.cuda.empty_cache() returns what would have served.
//
//   free 64, free 32, obtain 128 for a request of 128   -> a retry
//   free 64, free 32, obtain 32 for a request of 32     -> the program's own wish: a piece of 64 was there
//
// Pure functions; sizes are bytes.
#ifndef ASHLAR_ANALYZER_ANALYSES_CAUSES_RETURN_BURSTS_H_
#define ASHLAR_ANALYZER_ANALYSES_CAUSES_RETURN_BURSTS_H_

#include <cstdint>
#include <vector>

#include "allocator/policy/options.h"
#include "allocator/trace/event.h"
#include "analyzer/timeline/timeline.h"

namespace ashlar::analyses {

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

#endif  // ASHLAR_ANALYZER_ANALYSES_CAUSES_RETURN_BURSTS_H_
