// The runs of an input as exports take them: one for each device that the trace used (the one that the settings name,
// where they do), one after the other, so that no two are in memory together.
//
//   absl::Status status = ForEachRun(input, settings, With::kTimeline, [&](const ExportedRun& run) {
//     Use(run.traced.timeline, run.moment);
//     return absl::OkStatus();
//   });
#ifndef ASHLAR_COMMANDS_EXPORT_EXPORTED_RUN_H_
#define ASHLAR_COMMANDS_EXPORT_EXPORTED_RUN_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "allocator/trace/snapshot.h"
#include "analyzer/analyses/message/oom_message_verdict.h"
#include "analyzer/analyses/steps/steps.h"
#include "analyzer/timeline/timeline.h"
#include "commands/explain/explanation.h"
#include "commands/shared/input.h"
#include "commands/shared/replay_settings.h"
#include "commands/shared/traced_run.h"

namespace ashlar::exports {

struct ExportedRun {
  answers::TracedRun traced;
  timeline::EventIndex moment = timeline::kBeforeWindow;  // the last failure, else the peak (analyses::MomentOf)
  analyses::Steps steps = {};
  const trace::Snapshot* snapshot = nullptr;             // nullptr: the input is a list of requests
  std::optional<answers::Explanation> explanation = {};  // With::kExplanation

  int device() const { return traced.device.value_or(0); }
};

enum class With : std::uint8_t { kTimeline, kExplanation };

// Errors are those of TraceInput and Explain, and those of `use`, which ends the walk.
absl::Status ForEachRun(const answers::Input& input, const answers::ReplaySettings& settings, With with,
                        absl::FunctionRef<absl::Status(const ExportedRun&)> use);

// How many there will be.
std::size_t RunCount(const answers::Input& input, const answers::ReplaySettings& settings);

// "the out-of-memory error, event 6,768", "the peak of allocated memory, event 812".
std::string MomentInWords(const ExportedRun& run);

// The parts of an accounting under their names in JSON, in the order of the report. nullopt: not in the trace.

using AccountingPart = std::pair<const char*, std::optional<std::uint64_t>>;

inline std::array<AccountingPart, 11> AccountingParts(const analyses::OomAccounting& of) {
  return {{{"total", of.total_bytes},
           {"reserved", of.reserved_bytes},
           {"outside", of.outside_bytes},
           {"free", of.free_bytes},
           {"allocated", of.allocated_bytes},
           {"live", of.live_bytes},
           {"rounding", of.rounding_bytes},
           {"pending", of.pending_bytes},
           {"stranded", of.stranded_bytes},
           {"whole_free", of.whole_free_bytes},
           {"private_pool", of.private_pool_bytes}}};
}

}  // namespace ashlar::exports

#endif  // ASHLAR_COMMANDS_EXPORT_EXPORTED_RUN_H_
