// The large requests of a run, as a plan sees them: those of the default pools, by stream, each with the time that its
// block is in use, counted in requests of the trace.
#ifndef ASHLAR_ANALYZER_ANALYSES_PLAN_LARGE_REQUEST_H_
#define ASHLAR_ANALYZER_ANALYSES_PLAN_LARGE_REQUEST_H_

#include <cstdint>
#include <vector>

#include "allocator/base/units.h"

namespace ashlar::analyses {

struct LargeRequest {
  std::int64_t begin = 0;        // position of the request in the trace
  std::int64_t end = 0;          // of the one before which its memory is free again; half-open
  std::uint64_t size_bytes = 0;  // rounded
};

struct StreamRequests {
  Stream stream{};
  std::vector<LargeRequest> requests = {};  // in order of begin
};

}  // namespace ashlar::analyses

#endif  // ASHLAR_ANALYZER_ANALYSES_PLAN_LARGE_REQUEST_H_
