// Which large requests a run makes, and how long each block is in use: what a plan is made of.
#ifndef ASHLAR_ANALYZER_REMEDIES_LARGE_REQUESTS_H_
#define ASHLAR_ANALYZER_REMEDIES_LARGE_REQUESTS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "allocator/policy/options.h"
#include "allocator/trace/request.h"
#include "analyzer/analyses/plan/large_request.h"

namespace ashlar::remedies {

// By order of the streams' first large request. The requests are replayed in memory that does not run out, under the
// options: frees that wait for other streams complete as they do there.
absl::StatusOr<std::vector<analyses::StreamRequests>> LargeRequestsOf(const trace::RequestTrace& trace,
                                                                      const policy::Options& options);

}  // namespace ashlar::remedies

#endif  // ASHLAR_ANALYZER_REMEDIES_LARGE_REQUESTS_H_
