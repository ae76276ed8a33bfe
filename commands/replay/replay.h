// The answer of `ashlar replay`: the counts of one replay (docs/guide/replay.md).
//
//   absl::StatusOr<ReplayAnswer> answer = Replay(*LoadInput(bytes), settings, {.is_cold = true});
//   answer->stats.reserved_bytes.all().peak;
#ifndef ASHLAR_COMMANDS_REPLAY_REPLAY_H_
#define ASHLAR_COMMANDS_REPLAY_REPLAY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "allocator/core/stats.h"
#include "allocator/device/sim_device.h"
#include "allocator/trace/snapshot.h"
#include "analyzer/replay/warm_replay.h"
#include "commands/shared/input.h"
#include "commands/shared/replay_settings.h"

namespace ashlar::answers {

struct ReplayAnswer {
  std::string source;
  std::string compat;
  std::string free_order;
  std::string conf;
  std::optional<std::uint64_t> capacity_bytes;  // nullopt: not limited
  std::uint64_t requests = 0;
  core::Stats stats;
  device::DeviceCalls calls;
  std::optional<std::uint64_t> cost_ns;                       // nullopt: not modelled (addresses were recorded)
  std::optional<replay::Fidelity> fidelity;                   // snapshots only
  std::optional<std::uint64_t> recorded_peak_reserved_bytes;  // snapshots only
  std::vector<trace::Note> notes;
  std::string event_log;  // every decision, one a line, where that was asked for
};

struct ReplayMode {
  bool is_cold = false;      // a snapshot from an empty allocator, not from the state in which its window begins
  bool logs_events = false;  // of a cold replay: a snapshot is replayed so too
  bool events_complete_immediately = false;  // work on other streams is done as soon as it is recorded
};

// InvalidArgument for an input that no allocator's settings apply to; OutOfRange for a device that is not there.
absl::StatusOr<ReplayAnswer> Replay(const Input& input, const ReplaySettings& settings, const ReplayMode& mode);

}  // namespace ashlar::answers

namespace ashlar::report {

// Prints the answer of `ashlar replay`, as text or JSON. The JSON's keys are those of the golden files' index, so that
// the two can be compared key by key (docs/guide/replay.md).
//
//   std::cout << ToJson(*Replay(input, settings, {}));

std::string ToText(const answers::ReplayAnswer& report);
std::string ToJson(const answers::ReplayAnswer& report);

}  // namespace ashlar::report

#endif  // ASHLAR_COMMANDS_REPLAY_REPLAY_H_
