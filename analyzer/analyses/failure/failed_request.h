// Why one request failed, from the state at that moment: what could have been served, what each rung of the retry
// ladder could return, and which live blocks stood in the way. Pure functions; sizes are bytes.
//
//   for (const timeline::EventIndex event : timeline.oom_events()) {
//     const FailedRequest failed = ExamineFailure(timeline, event, options);
//     if (failed.release.has_value()) Print(failed.release->bytes);   // fewest live bytes whose release makes room
//   }
//
// "Makes room" means: the same request, made again after those blocks are freed, succeeds (docs/internals/policy.md):
// either one run of free bytes in a segment of its pool and stream is large enough, or the segments emptied give the
// device enough for a new segment. Both are searched exactly.
//
// Not covered: pages that an expandable segment could return while blocks remain in it (it is counted whole or by one
// run, and the lower bound is then only what no placement at all could beat), overflow pools and callbacks (not in any
// trace), segments of private pools as a source of device memory (the allocator keeps them while their pool is in use).
#ifndef ASHLAR_ANALYZER_ANALYSES_FAILURE_FAILED_REQUEST_H_
#define ASHLAR_ANALYZER_ANALYSES_FAILURE_FAILED_REQUEST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "allocator/policy/options.h"
#include "analyzer/timeline/timeline.h"

namespace ashlar::analyses {

// Counted on the state in which the ladder began, each rung by itself: what several return is counted in each of them.
struct LadderRung {
  std::string name;          // "reuse a cached block", "collect garbage", ...
  std::uint64_t bytes = 0;   // what it would make available
  bool would_serve = false;  // whether the request fits after it
  std::string remark = {};   // why not, or what is not in this trace
};

// The live blocks whose release would have made room, with the fewest bytes.
struct ReleaseSet {
  std::vector<std::size_t> blocks = {};  // indices in Timeline::blocks(), ascending; empty: it fits as it is
  std::uint64_t bytes = 0;               // what they hold
  std::uint64_t lower_bound_bytes = 0;   // no set with fewer bytes can do
  bool is_minimal = false;               // bytes == lower_bound_bytes, proven
  bool is_one_run = false;               // they lie in a row; false: whole segments are emptied for the device
};

struct FailedRequest {
  timeline::EventIndex event = timeline::kBeforeWindow;
  std::uint64_t request_bytes = 0;  // rounded
  std::uint64_t segment_bytes = 0;  // the new segment it would have needed
  std::uint64_t device_free_bytes = 0;
  Stream stream{};
  PoolId pool = {};  // the default pool where the trace does not name one
  bool is_small_pool = false;
  // The device had room for the segment and it failed all the same: a memory fraction or another limit.
  bool is_limited = false;
  // The greatest rounded sizes that would have succeeded in that pool and stream: at all, and from the cache alone. Of
  // a new segment under a limit nothing is known: the cache's then.
  std::uint64_t largest_servable_bytes = 0;
  std::uint64_t largest_cached_bytes = 0;
  std::uint64_t free_in_other_streams_bytes = 0;  // largest free run that only the stream keeps away
  std::uint64_t free_in_other_pools_bytes = 0;    // the same for the pool
  // What went back to the device right before, event after event: by the ladder, or by an empty_cache call.
  std::uint64_t returned_bytes = 0;
  std::uint64_t returned_segments = 0;
  std::vector<LadderRung> rungs = {};      // in the ladder's order
  std::optional<ReleaseSet> release = {};  // nullopt: no set of live blocks of this allocator is enough
};

// `event` is one of timeline.oom_events(). O(all spans + segments * units of the need), see release_set.h.
FailedRequest ExamineFailure(const timeline::Timeline& timeline, timeline::EventIndex event,
                             const policy::Options& options);

}  // namespace ashlar::analyses

#endif  // ASHLAR_ANALYZER_ANALYSES_FAILURE_FAILED_REQUEST_H_
