// Replays a snapshot's window from the state in which it began: every allocation must land where it was recorded. The
// replay takes two kinds of answers from the record. The device's are where it put a segment, and when it had no memory
// left (a release that stands before a new segment, an OOM). The start state's are the unsplit rests, which follow from
// later addresses. All are counted. After a miss the replay goes on with its own state.
//
//   absl::StatusOr<WarmReplay> replay = RunWarmReplay(trace, program, options);
//   replay->fidelity.matched == replay->fidelity.total
//
// What a record cannot tell, so that a replay of it may miss: how old free segments were when the window began
// (garbage collection), which of them was obtained first (free order by segment counter), how far the reservation of
// an expandable segment reached, the pool of a segment that is gone in the end where events name no pools, and the
// unsplit rest of an older block that nothing ever showed (StartState::unknown_tails). A window that begins with its
// program is free of all these but the reservation's size, which `device_total_bytes` tells, and the pools.
#ifndef ASHLAR_ANALYZER_REPLAY_WARM_REPLAY_H_
#define ASHLAR_ANALYZER_REPLAY_WARM_REPLAY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "allocator/core/stats.h"
#include "allocator/device/sim_device.h"
#include "allocator/policy/options.h"
#include "analyzer/replay/snapshot_program.h"
#include "analyzer/timeline/device_trace.h"
#include "analyzer/timeline/timeline.h"

namespace ashlar::replay {

// Fidelity counts how far a replay made the decisions that were recorded.

// The first allocation that landed elsewhere.
struct Mismatch {
  std::int64_t event = 0;
  std::uint64_t recorded_address = 0;
  std::uint64_t replayed_address = 0;  // 0: the replay ran out of memory, or the record did
};

struct Fidelity {
  std::uint64_t matched = 0;  // allocations whose address equals the recorded one; recorded OOMs that failed again
  std::uint64_t total = 0;
  std::uint64_t segments_matched = 0;  // segments obtained and returned, maps and unmaps: same request, same range
  std::uint64_t segments_total = 0;
  std::optional<Mismatch> first_mismatch;
  bool final_state_matches = false;
  std::string final_state_difference;  // empty when it matches

  // The recorded answers that were used, and nothing else was.
  std::uint64_t segment_addresses_used = 0;  // where the driver put a segment
  std::uint64_t tails_inferred = 0;          // unsplit rests of the older blocks, inferred from later addresses

  bool IsExact() const { return matched == total && segments_matched == segments_total && final_state_matches; }
};

struct WarmReplay {
  Fidelity fidelity;
  timeline::Timeline timeline;  // empty, unless it was to be kept
  core::Stats stats;
  device::DeviceCalls calls;
  // The releases that stand right before growth (Release::kMaybeLadder) which were no retries: requests of the program.
  std::vector<std::size_t> user_calls = {};
};

// What snapshots do not say of the machine they are from.
struct WarmReplayHints {
  std::optional<std::uint64_t> device_total_bytes = {};
  // The same requests, made once more under settings that hold throughout, on a device of so many bytes that answers by
  // itself: what was refused, changed or failed in the recording is not. Only of recordings that name every call.
  std::optional<std::uint64_t> other_capacity_bytes = {};
  // The peaks of the statistics are those from this event on. Only of recordings that name every call.
  std::uint64_t peaks_from = 0;
  // The replay's decisions as a timeline. Without it the allocator serves from its cache as a program's does, and the
  // replay is several times as fast; every count is the same.
  bool keeps_timeline = false;
};

absl::StatusOr<WarmReplay> RunWarmReplay(const timeline::DeviceTrace& trace, const SnapshotProgram& program,
                                         const policy::Options& options, const WarmReplayHints& hints = {});

}  // namespace ashlar::replay

#endif  // ASHLAR_ANALYZER_REPLAY_WARM_REPLAY_H_
