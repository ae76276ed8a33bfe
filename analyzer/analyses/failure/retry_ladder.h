// The rungs that an allocator tries before it gives a request up (docs/internals/policy.md), and what each could
// return. Private to the examination of failed requests.
#ifndef ASHLAR_ANALYZER_ANALYSES_FAILURE_RETRY_LADDER_H_
#define ASHLAR_ANALYZER_ANALYSES_FAILURE_RETRY_LADDER_H_

#include <cstdint>
#include <vector>

#include "analyzer/analyses/failure/failed_request.h"
#include "analyzer/analyses/failure/request_lane.h"

namespace ashlar::analyses {

// The first event of what happened right before `oom` inside the same call: finished frees, segments returned, pages
// mapped and not enough. `oom` itself when nothing did. An empty_cache call just before looks the same.
timeline::EventIndex LadderBegin(const timeline::Timeline& timeline, timeline::EventIndex oom);

struct LadderStates {
  const timeline::State* before = nullptr;  // when the ladder began
  const timeline::State* after = nullptr;   // when the request was given up
  std::uint64_t free_before_bytes = 0;      // of the device
  bool is_limited = false;                  // the device had room, a limit refused it
};

std::vector<LadderRung> ClimbLadder(const RequestLane& lane, const LadderStates& states);

}  // namespace ashlar::analyses

#endif  // ASHLAR_ANALYZER_ANALYSES_FAILURE_RETRY_LADDER_H_
