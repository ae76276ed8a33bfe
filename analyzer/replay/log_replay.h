// Replays a recording that names every call, refusal and reservation (trace::RecordingInfo::has_calls): nothing is
// guessed. Events and facts are taken one after the other; each call and each request is made again, and the device
// answers what it answered.
//
//   fact  empty_cache            -> EmptyCache(); the completed frees and releases behind it are its own
//   event free_requested 0x7f..  -> free; completed where the free_completed stands
//   fact  refused 20 MiB         -> the request under way: the device, or the limit, refuses here,
//   event segment_free 0x7e..       this the ladder does,
//   event segment_alloc 0x7c..      here the device gives,
//   event alloc 0x7c..              and this is what was asked for
//
// A replay that no longer follows (other settings) is given memory at addresses of the device's own choice.
#ifndef ASHLAR_ANALYZER_REPLAY_LOG_REPLAY_H_
#define ASHLAR_ANALYZER_REPLAY_LOG_REPLAY_H_

#include "absl/status/statusor.h"
#include "allocator/policy/options.h"
#include "allocator/trace/snapshot.h"
#include "analyzer/replay/recorded_moment.h"
#include "analyzer/replay/snapshot_program.h"
#include "analyzer/replay/warm_replay.h"
#include "analyzer/timeline/window.h"

namespace ashlar::replay {

bool NamesCalls(const trace::Snapshot& snapshot, int device);

// Of a recording that NamesCalls.
absl::StatusOr<WarmReplay> RunLogReplay(const trace::Snapshot& snapshot, const SnapshotProgram& program,
                                        const policy::Options& options, const WarmReplayHints& hints);

// Replays up to the window's end. FailedPrecondition where the replay does not follow the record so far.
absl::StatusOr<RecordedMoments> ReplayToMoments(const trace::Snapshot& snapshot, const SnapshotProgram& program,
                                                const policy::Options& options, const WarmReplayHints& hints,
                                                const timeline::EventWindow& window);

}  // namespace ashlar::replay

#endif  // ASHLAR_ANALYZER_REPLAY_LOG_REPLAY_H_
