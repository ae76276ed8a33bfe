// Puts a known state into an allocator and its simulated device.
#ifndef ASHLAR_ANALYZER_REPLAY_RESTORED_STATE_H_
#define ASHLAR_ANALYZER_REPLAY_RESTORED_STATE_H_

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "allocator/core/caching_allocator.h"
#include "allocator/device/sim_device.h"
#include "analyzer/replay/reservations.h"
#include "analyzer/timeline/start_state.h"

namespace ashlar::replay {

// Which segment was obtained as the how-manieth, by address; only looked up.
using SegmentOrder = absl::flat_hash_map<std::uint64_t, std::size_t>;

// Restores every segment at its address, free blocks where no block stands; expandable ranges inside their
// reservations. Returns the occupied blocks in the state's order, all live (the caller makes pending ones pending).
// InvalidArgument when the ranges cannot be those of one allocator.
// Ordinary segments come in the given order, by address where it does not name them.
absl::StatusOr<std::vector<core::Block*>> RestoreState(const timeline::State& state, const Reservations& reservations,
                                                       core::CachingAllocator& allocator, device::SimDevice& device,
                                                       const SegmentOrder& order = {});

}  // namespace ashlar::replay

#endif  // ASHLAR_ANALYZER_REPLAY_RESTORED_STATE_H_
