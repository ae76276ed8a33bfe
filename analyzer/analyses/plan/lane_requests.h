// The requests of a run, as a plan sees them: by lane, each with the time that its block is in use, counted in requests
// of the trace. A lane is the large or the small blocks of one stream in one pool.
#ifndef ASHLAR_ANALYZER_ANALYSES_PLAN_LANE_REQUESTS_H_
#define ASHLAR_ANALYZER_ANALYSES_PLAN_LANE_REQUESTS_H_

#include <cstdint>
#include <vector>

#include "allocator/base/units.h"

namespace ashlar::analyses {

struct LaneRequest {
  std::int64_t begin = 0;        // position of the request in the trace
  std::int64_t end = 0;          // of the one before which its memory is free again; half-open
  std::uint64_t size_bytes = 0;  // rounded
};

struct LaneRequests {
  Stream stream{};
  PoolId pool = {};
  bool is_small = false;                   // of at most 1 MiB each, else of more
  std::vector<LaneRequest> requests = {};  // in order of begin
};

}  // namespace ashlar::analyses

#endif  // ASHLAR_ANALYZER_ANALYSES_PLAN_LANE_REQUESTS_H_
