// Replays a snapshot's window from the state in which it began: every allocation must land where it was recorded.
// The answers taken from the record are the addresses the driver gave to segments (and, in the start state, the
// unsplit rests told from later addresses); both are counted. After a miss the replay goes on with its own state.
//
//   absl::StatusOr<WarmReplay> replay = RunWarmReplay(snapshot, program, options);
//   replay->fidelity.matched == replay->fidelity.total
#ifndef ASHLAR_ANALYZER_REPLAY_WARM_REPLAY_H_
#define ASHLAR_ANALYZER_REPLAY_WARM_REPLAY_H_

#include "absl/status/statusor.h"
#include "allocator/core/stats.h"
#include "allocator/device/sim_device.h"
#include "allocator/policy/options.h"
#include "allocator/trace/snapshot.h"
#include "analyzer/replay/fidelity.h"
#include "analyzer/replay/snapshot_program.h"
#include "analyzer/timeline/timeline.h"

namespace ashlar::replay {

struct WarmReplay {
  Fidelity fidelity;
  timeline::Timeline timeline;
  core::Stats stats;
  device::DeviceCalls calls;
};

absl::StatusOr<WarmReplay> RunWarmReplay(const trace::Snapshot& snapshot, const SnapshotProgram& program,
                                         const policy::Options& options);

}  // namespace ashlar::replay

#endif  // ASHLAR_ANALYZER_REPLAY_WARM_REPLAY_H_
