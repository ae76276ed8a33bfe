// Which requests a run makes, lane by lane, and how long each block is in use: what a plan is made of.
#ifndef ASHLAR_ANALYZER_REMEDIES_LANE_REQUESTS_H_
#define ASHLAR_ANALYZER_REMEDIES_LANE_REQUESTS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "allocator/policy/options.h"
#include "allocator/trace/request.h"
#include "analyzer/analyses/plan/lane_requests.h"

namespace ashlar::remedies {

// By order of the lanes' first request. The requests are replayed in memory that does not run out, under the
// options: frees that wait for other streams complete as they do there.
absl::StatusOr<std::vector<analyses::LaneRequests>> LaneRequestsOf(const trace::RequestTrace& trace,
                                                                   const policy::Options& options);

}  // namespace ashlar::remedies

#endif  // ASHLAR_ANALYZER_REMEDIES_LANE_REQUESTS_H_
