// The blocks of a timeline as lifetimes: from the event that allocated a block to the one that gave its memory back,
// counted so that 0 is before the first event. Sizes are what was requested, and block sizes where the trace does not
// say.
#ifndef ASHLAR_ANALYZER_ANALYSES_STATE_LIFETIMES_H_
#define ASHLAR_ANALYZER_ANALYSES_STATE_LIFETIMES_H_

#include <cstdint>
#include <vector>

#include "allocator/trace/lifetime.h"
#include "analyzer/timeline/timeline.h"

namespace ashlar::analyses {

struct BlockLifetimes {
  std::vector<trace::Lifetime> in_use;  // until the free completed: what an allocator must work with
  std::uint64_t live_bytes_peak = 0;    // greatest sum until the free was requested: what the program needed
  std::uint64_t unknown_requests = 0;   // blocks that count with their block size
};

BlockLifetimes LifetimesOf(const timeline::Timeline& timeline);

}  // namespace ashlar::analyses

#endif  // ASHLAR_ANALYZER_ANALYSES_STATE_LIFETIMES_H_
