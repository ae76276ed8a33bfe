// Replays a snapshot the way it was recorded: works out the version and the settings, and measures how exact that is.
// The version comes from the snapshot's fields; the order of free blocks, which no field tells, is the first of the
// version's possible orders under which every address comes out, else the one under which most do.
#ifndef ASHLAR_ANALYZER_REPLAY_RECORDED_REPLAY_H_
#define ASHLAR_ANALYZER_REPLAY_RECORDED_REPLAY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "allocator/policy/options.h"
#include "allocator/trace/snapshot.h"
#include "analyzer/replay/snapshot_program.h"
#include "analyzer/replay/warm_replay.h"
#include "analyzer/timeline/device_trace.h"

namespace ashlar::replay {

// What the caller fixes; the rest is guessed.
struct ReplayOverrides {
  std::optional<policy::Compat> compat = {};
  std::optional<policy::FreeOrder> free_order = {};
  std::optional<std::string> conf = {};  // instead of the recorded settings
  bool keeps_timeline = false;           // of the replay: WarmReplayHints::keeps_timeline
};

struct RecordedReplay {
  policy::Options options;
  SnapshotProgram program;
  WarmReplay warm;
  std::string guess;            // one sentence: the version, the order, and what spoke for them
  timeline::Timeline observed;  // what was recorded, which the program was made with
};

absl::StatusOr<RecordedReplay> ReplayAsRecorded(const timeline::DeviceTrace& trace,
                                                const ReplayOverrides& overrides = {});

// Requests that failed.
std::uint64_t FailedRequests(const timeline::DeviceTrace& trace);
// Those that have events or memory, in order; device 0 for an empty snapshot.
std::vector<int> UsedDevices(const trace::Snapshot& snapshot);
// The device of the last request that failed; where none did, the one that holds most.
int DeviceToExplain(const trace::Snapshot& snapshot);

}  // namespace ashlar::replay

#endif  // ASHLAR_ANALYZER_REPLAY_RECORDED_REPLAY_H_
