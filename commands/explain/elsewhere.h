// Whether a recorded run would fit a device that is not the recorded one: its requests replayed in that memory, or of a
// message alone its figures held against it.
//
//   options.other_device = OtherDevice{.card = "L4", .total_bytes = 22 * kGiB};
//   Explain(input, options)->front().elsewhere->sentence;   // "yes, on L4 (22.00 GiB): peak 11.22 GiB, ..."
#ifndef ASHLAR_COMMANDS_EXPLAIN_ELSEWHERE_H_
#define ASHLAR_COMMANDS_EXPLAIN_ELSEWHERE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "allocator/trace/snapshot.h"
#include "analyzer/analyses/steps/steps.h"
#include "commands/explain/failure.h"
#include "commands/shared/replay_settings.h"
#include "commands/shared/traced_run.h"

namespace ashlar::answers {

struct OtherDevice {
  std::string card = {};  // of the table of GPUs; empty: a size alone, which may be the recorded device's
  std::uint64_t total_bytes = 0;
  std::optional<std::uint64_t> context_bytes = {};
};

// What the settings ask of: a card, or a capacity. A card is taken out of them, since the run was not recorded on it.
std::optional<OtherDevice> TakeOtherDevice(ReplaySettings& settings);
// The settings with that memory.
ReplaySettings On(const OtherDevice& device, ReplaySettings settings);

struct Elsewhere {
  std::string card;
  std::uint64_t total_bytes = 0;
  std::uint64_t allocator_bytes = 0;             // less the context
  std::optional<bool> fits = {};                 // nullopt: as far as the input tells, and it does not tell all
  std::optional<std::string> conf = {};          // the settings that it fits under
  std::optional<std::uint64_t> peak_bytes = {};  // under them
  std::string sentence = {};
};

// Whether the device is another than the one of this accounting: a card that is named, a size that the recorded device
// cannot have, and one with more room outside of the allocator than a context takes. A run that did not fail is asked
// in any case.
bool IsElsewhere(const OtherDevice& device, const OomAccounting& recorded, bool has_failed);

absl::StatusOr<Elsewhere> TryElsewhere(const trace::Snapshot& snapshot, const ObservedRun& run,
                                       const analyses::Steps& steps, const ReplaySettings& settings,
                                       const OtherDevice& device);
// Without requests to replay: by what was held, and what was asked for where that failed.
Elsewhere HeldElsewhere(const OtherDevice& device, const OomAccounting& recorded,
                        const std::optional<std::uint64_t>& tried_bytes);

}  // namespace ashlar::answers

#endif  // ASHLAR_COMMANDS_EXPLAIN_ELSEWHERE_H_
