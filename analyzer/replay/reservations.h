// Finds the address ranges that a record's expandable segments were reserved in. A record shows maps and mapped ranges
// only, and a reservation follows from them: ranges of one lane (stream, pool, small or large) with no other lane's
// between them lie in one, unless they touch (one range would be seen) or do not share the grid of pages.
//
//   lane 1  |mapped|   |mapped|      lane 2  |mapped|          two reservations, the first ends where the second begins
//
// What cannot be told, unless the record names it: how far a reservation goes beyond what was mapped. It is taken to
// reach to the next one.
#ifndef ASHLAR_ANALYZER_REPLAY_RESERVATIONS_H_
#define ASHLAR_ANALYZER_REPLAY_RESERVATIONS_H_

#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

#include "allocator/policy/options.h"
#include "analyzer/replay/snapshot_program.h"
#include "analyzer/timeline/device_trace.h"
#include "analyzer/timeline/start_state.h"

namespace ashlar::replay {

struct LaneId {
  std::uint64_t stream = 0;
  bool is_small_pool = false;
  PoolId pool = {};
  auto operator<=>(const LaneId&) const = default;
};

// The state in which the trace begins: as the recording says, else what its events lead back to.
timeline::StartState FirstState(const timeline::DeviceTrace& trace, timeline::StartState rewound);

struct Reservation {
  LaneId lane;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::vector<const timeline::StateSegment*> ranges = {};  // mapped at the window's start, ascending; may be empty
  bool stands_at_start = false;                            // known to, even where nothing is mapped
};

struct Reservations {
  std::vector<Reservation> all;
  std::uint64_t size_bytes = 0;  // of a new one
};

// `device_total_bytes`: the recording device's memory, which sets the size of a reservation; nullopt where unknown.
// A recording of our own names the reservations of its states; those of its start come in the
// order in which they were made.
Reservations FindReservations(const timeline::DeviceTrace& trace, const SnapshotProgram& program,
                              const policy::Options& options, std::optional<std::uint64_t> device_total_bytes);

// What a replay over a simulated device runs under: the size of a new reservation is the recording device's.
policy::Options WithReserve(policy::Options options, const Reservations& reservations);

}  // namespace ashlar::replay

#endif  // ASHLAR_ANALYZER_REPLAY_RESERVATIONS_H_
