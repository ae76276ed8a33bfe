// Turns the events of a snapshot back into requests, with the recorded answers beside them.
//
//   event: alloc 0x7f..00 5 MiB          -> allocate 5 MiB as id 17          recorded address 0x7f..00
//   event: free_requested, _completed    -> free id 17
//   event: free_requested alone          -> record_stream on a stream of its own, free; that stream's work completes
//                                           where the free_completed stands
//   event: segment_free ...              -> empty_cache, of one pool where a recording says so (or a release by the
//                                           ladder: see Release)
//   event: segment_map, segment_unmap    -> nothing of its own: the ladder undoes a growth that did not succeed
//   event: oom                           -> allocate, and fail
//   events that put a pool back          -> allocate and free, as trace::PutBack says (pool_restores.h)
//
// Blocks that were live when the window began are allocated first, in address order (`start_count` requests), which a
// cold replay runs and a warm replay finds in place.
#ifndef ASHLAR_ANALYZER_REPLAY_SNAPSHOT_PROGRAM_H_
#define ASHLAR_ANALYZER_REPLAY_SNAPSHOT_PROGRAM_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "allocator/trace/request.h"
#include "analyzer/timeline/block_size_rule.h"
#include "analyzer/timeline/device_trace.h"
#include "analyzer/timeline/start_state.h"
#include "analyzer/timeline/timeline.h"

namespace ashlar::replay {

// Streams that stand for "whatever this free waits for" have handles no framework uses.
inline constexpr std::uint64_t kFirstWaitStream = std::uint64_t{1} << 63;

// Whether freed segments stand where a user's empty_cache must have been, or where the ladder may have released them
// on the way to a new segment (both leave the same state). Their stack tells them apart where it is that of no request;
// what else was a call a replay finds out (WarmReplay::user_calls).
enum class Release : std::uint8_t { kNone, kUserCall, kMaybeLadder };

// What was recorded of a request. The address of an allocation is its event's. 12 bytes.
struct RecordedAnswer {
  timeline::ColumnIndex event = -1;  // the request's own event; -1 for blocks older than the window
  // Segment events in [segments_from, event] belong to this request; those of a release that may be the ladder's
  // belong to the request that follows it.
  timeline::ColumnIndex segments_from = 0;
  bool is_oom = false;
  bool is_pool_known = true;  // false: an OOM whose pool the trace does not name
  bool is_put_back = false;   // trace::PutBack: it stands where the record has it, and was not searched for
  Release release = Release::kNone;
};

struct SnapshotProgram {
  int device = 0;
  trace::RequestTrace requests;
  std::vector<RecordedAnswer> answers;   // one a request
  std::size_t start_count = 0;           // the first requests: blocks older than the window
  std::vector<std::uint32_t> start_ids;  // ids of the start state's blocks, in its order
  timeline::StartState start;
  std::int64_t requests_end = 0;     // segment events from here on belong to no request
  std::uint64_t user_releases = 0;   // empty_cache calls inferred from freed segments
  std::uint64_t maybe_releases = 0;  // freed segments right before a new one: empty_cache or the ladder
};

// FailedPrecondition when the device's trace and segments contradict each other.
absl::StatusOr<SnapshotProgram> MakeProgram(const timeline::DeviceTrace& trace, const timeline::BlockSizeRule& rule);

// The same, and the timeline that it was made with (timeline/observed.h), so that a trace is rewound once.
struct ObservedProgram {
  SnapshotProgram program;
  timeline::Timeline observed;
};
absl::StatusOr<ObservedProgram> ObserveProgram(const timeline::DeviceTrace& trace, const timeline::BlockSizeRule& rule);

// Turns the calls of a program that has no allocator into requests: an allocation and a free for each of its own, in
// their order. A cold replay then says what an allocator would have made of them.

// Of a snapshot for which trace::RecordsDeviceCalls holds.
SnapshotProgram MakeCallsProgram(const timeline::DeviceTrace& trace);

// A block is as big as what was asked for, and a segment as its block.
timeline::BlockSizeRule CallsSizeRule();

}  // namespace ashlar::replay

#endif  // ASHLAR_ANALYZER_REPLAY_SNAPSHOT_PROGRAM_H_
