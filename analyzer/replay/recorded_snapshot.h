// A list of requests, run through the allocator and recorded: what a recorder of the live program would have written.
#ifndef ASHLAR_ANALYZER_REPLAY_RECORDED_SNAPSHOT_H_
#define ASHLAR_ANALYZER_REPLAY_RECORDED_SNAPSHOT_H_

#include "absl/status/statusor.h"
#include "allocator/trace/request.h"
#include "allocator/trace/snapshot.h"
#include "analyzer/replay/request_replay.h"

namespace ashlar::replay {

// From an empty allocator, without times. Out of memory is an event, not an error.
absl::StatusOr<trace::Snapshot> RecordRequests(const trace::RequestTrace& requests, RequestReplayOptions options);

}  // namespace ashlar::replay

#endif  // ASHLAR_ANALYZER_REPLAY_RECORDED_SNAPSHOT_H_
