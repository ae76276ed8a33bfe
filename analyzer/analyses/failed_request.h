// Why one request failed, from the state at that moment: what could have been served, what each rung of the retry
// ladder could return, and which live blocks stood in the way. Pure functions; sizes are bytes.
#ifndef ASHLAR_ANALYZER_ANALYSES_FAILED_REQUEST_H_
#define ASHLAR_ANALYZER_ANALYSES_FAILED_REQUEST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "allocator/policy/options.h"
#include "analyzer/timeline/timeline.h"

namespace ashlar::analyses {

struct LadderRung {
  std::string name;          // "reuse a cached block", "collect garbage", ...
  std::uint64_t bytes = 0;   // what it would make available
  bool would_serve = false;  // whether the request fits after it
  std::string remark = {};   // why not, or what is not in this trace
};

// The live blocks whose release would have made room, with the fewest bytes.
struct ReleaseSet {
  std::vector<std::size_t> blocks = {};  // indices in Timeline::blocks()
  std::uint64_t bytes = 0;               // what they hold
  std::uint64_t lower_bound_bytes = 0;   // no set with fewer bytes can do
  bool is_minimal = false;               // bytes == lower_bound_bytes, proven
};

struct FailedRequest {
  timeline::EventIndex event = timeline::kBeforeWindow;
  std::uint64_t request_bytes = 0;  // rounded
  std::uint64_t segment_bytes = 0;  // the new segment it would have needed
  std::uint64_t device_free_bytes = 0;
  Stream stream{};
  PoolId pool = {};
  bool is_small_pool = false;
  std::uint64_t largest_servable_bytes = 0;       // in that pool and stream, from the cache or a new segment
  std::uint64_t largest_cached_bytes = 0;         // from the cache alone
  std::uint64_t free_in_other_streams_bytes = 0;  // largest free run that only the stream keeps away
  std::uint64_t free_in_other_pools_bytes = 0;    // the same for the pool
  std::vector<LadderRung> rungs = {};             // in the ladder's order
  std::optional<ReleaseSet> release = {};         // nullopt: no set of live blocks of this allocator is enough
};

// `event` is one of timeline.oom_events().
FailedRequest ExamineFailure(const timeline::Timeline& timeline, timeline::EventIndex event,
                             const policy::Options& options);

}  // namespace ashlar::analyses

#endif  // ASHLAR_ANALYZER_ANALYSES_FAILED_REQUEST_H_
