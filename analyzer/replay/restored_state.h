// Puts a known state into an allocator and its simulated device.
#ifndef ASHLAR_ANALYZER_REPLAY_RESTORED_STATE_H_
#define ASHLAR_ANALYZER_REPLAY_RESTORED_STATE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "allocator/core/caching_allocator.h"
#include "allocator/device/sim_device.h"
#include "allocator/trace/snapshot.h"
#include "analyzer/replay/reservations.h"
#include "analyzer/timeline/start_state.h"

namespace ashlar::replay {

// Restores every segment at its address, free blocks where no block stands; expandable ranges inside their
// reservations. Returns the occupied blocks in the state's order, all live (the caller makes pending ones pending).
// InvalidArgument when the ranges cannot be those of one allocator.
// A recording's start says in which order ordinary segments were obtained (else it is that of their addresses) and how
// long those that are wholly free have been so (else all for no time), and which pages are large (else none is).
absl::StatusOr<std::vector<core::Block*>> RestoreState(const timeline::State& state, const Reservations& reservations,
                                                       core::CachingAllocator& allocator, device::SimDevice& device,
                                                       const trace::RecordedStart* recorded = nullptr);

}  // namespace ashlar::replay

#endif  // ASHLAR_ANALYZER_REPLAY_RESTORED_STATE_H_
