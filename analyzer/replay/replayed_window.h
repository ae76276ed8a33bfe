// How both replays of a recorded window (warm_replay.h, log_replay.h) begin and end.
//
//   absl::StatusOr<std::vector<core::Block*>> start = RestoreWindow(program, reservations, allocator, device);
//   ...                                                   // the window, step by step
//   return FinishWindow(trace, program, device, fidelity, allocator, sink);
//
// Functions over the replayer's own parts, which outlive the calls. Not thread-safe.
#ifndef ASHLAR_ANALYZER_REPLAY_REPLAYED_WINDOW_H_
#define ASHLAR_ANALYZER_REPLAY_REPLAYED_WINDOW_H_

#include <vector>

#include "absl/status/statusor.h"
#include "allocator/core/caching_allocator.h"
#include "allocator/device/sim_device.h"
#include "allocator/trace/snapshot.h"
#include "analyzer/replay/decisions.h"
#include "analyzer/replay/recorded_device.h"
#include "analyzer/replay/reservations.h"
#include "analyzer/replay/snapshot_program.h"
#include "analyzer/replay/warm_replay.h"
#include "analyzer/timeline/device_trace.h"
#include "analyzer/timeline/start_state.h"

namespace ashlar::replay {

// Puts a known state into an allocator and its simulated device.

// Restores every segment at its address, free blocks where no block stands; expandable ranges inside their
// reservations. Returns the occupied blocks in the state's order, all live (the caller makes pending ones pending).
// InvalidArgument when the ranges cannot be those of one allocator.
// A recording's start says in which order ordinary segments were obtained (else it is that of their addresses) and how
// long those that are wholly free have been so (else all for no time), and which pages are large (else none is).
absl::StatusOr<std::vector<core::Block*>> RestoreState(const timeline::State& state, const Reservations& reservations,
                                                       core::CachingAllocator& allocator, device::SimDevice& device,
                                                       const trace::RecordedStart* recorded = nullptr);

// The state that the window begins in, as RestoreState has it; the device knows its segments.
absl::StatusOr<std::vector<core::Block*>> RestoreWindow(const SnapshotProgram& program,
                                                        const Reservations& reservations,
                                                        core::CachingAllocator& allocator, RecordedDevice& device,
                                                        const trace::RecordedStart* recorded = nullptr);

// Ends the replay: its timeline, and its last state against the recorded one. Takes the sink from the allocator.
absl::StatusOr<WarmReplay> FinishWindow(const timeline::DeviceTrace& trace, const SnapshotProgram& program,
                                        RecordedDevice& device, Fidelity fidelity, core::CachingAllocator& allocator,
                                        DecisionSink& sink);

}  // namespace ashlar::replay

#endif  // ASHLAR_ANALYZER_REPLAY_REPLAYED_WINDOW_H_
