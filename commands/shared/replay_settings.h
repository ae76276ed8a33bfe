// The settings of a replay: which device of the input, which allocator settings, how much memory, and the listener for
// progress.
//
//   ReplaySettings settings;
//   settings.capacity_bytes = 16 * kGiB;
//   absl::StatusOr<TracedRun> run = TraceInput(input, settings);
#ifndef ASHLAR_COMMANDS_SHARED_REPLAY_SETTINGS_H_
#define ASHLAR_COMMANDS_SHARED_REPLAY_SETTINGS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "allocator/device/sim_device.h"
#include "allocator/trace/snapshot.h"
#include "analyzer/replay/recorded_replay.h"
#include "analyzer/timeline/window.h"
#include "analyzer/whatif/what_if_input.h"

namespace ashlar::answers {

// Told what is being done as it begins, in words for people: "what-ifs 3 of 8". Empty: nobody asks.
using whatif::Progress;

// The most memory that a device can be said to have.
inline constexpr std::uint64_t kMostCapacityBytes = std::uint64_t{1} << 44;

struct ReplaySettings {
  std::optional<std::uint64_t> capacity_bytes;  // of the device
  std::string card;                             // that it is the memory of, by its name; empty: none was named
  std::optional<std::uint64_t> context_bytes;  // what of it the process's CUDA context takes; nullopt: nothing is known
  std::optional<double> memory_fraction;
  std::optional<int> device;  // of a snapshot; default: the one that holds most
  replay::ReplayOverrides overrides;
  std::optional<device::AddressOrder> segment_addresses;  // nullopt: as a recorded device did, else ascending
  device::CostModel device_costs = {};
  std::size_t threads = 0;            // 0 = one a core; no answer depends on it
  timeline::AskedWindow window = {};  // of the input, which is cut before anything sees it (input.h)
  Progress progress = {};
};

// The memory of a card of the table of GPUs, and its context where none is given. Errors list the names.
absl::Status SetCard(absl::string_view name, ReplaySettings& settings);
// The most that a context of the table takes.
std::uint64_t MostContextBytes();

// Has `stage` told, where somebody asks.
void Tell(const ReplaySettings& settings, const std::string& stage);

// For the process that recorded the snapshot: where nothing is known of its context, one is assumed. A recording of our
// own may be of a device that needs none.
ReplaySettings WithContext(ReplaySettings settings, const trace::Snapshot& snapshot);

// Says what was assumed, where it counts; else nullopt.
std::optional<trace::Note> ContextNote(const ReplaySettings& settings, const trace::Snapshot& snapshot);

// What of the capacity is left to the allocator.
std::optional<std::uint64_t> AllocatorBytes(const ReplaySettings& settings);
// And the rest of it.
std::uint64_t OutsideBytes(const ReplaySettings& settings);

// Where and under which limits to replay.
whatif::ReplayLimits LimitsOf(const ReplaySettings& settings);

}  // namespace ashlar::answers

#endif  // ASHLAR_COMMANDS_SHARED_REPLAY_SETTINGS_H_
