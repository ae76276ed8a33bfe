// Explains what a run left: the process that failed, else the one that held most.
#ifndef ASHLAR_ANALYZER_CLI_LAUNCH_EXPLAIN_H_
#define ASHLAR_ANALYZER_CLI_LAUNCH_EXPLAIN_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "analyzer/answers/explanation.h"
#include "analyzer/answers/replay_settings.h"
#include "analyzer/cli/launch_results.h"

namespace ashlar::cli {

// The first with a failure, else the first of those with a history whose device held most; nullptr: there is no
// history.
const ProcessRun* ToExplain(const RunResults& results);

// By its last failure, else by its history. `total_bytes` is of its device, where that is known.
absl::StatusOr<answers::Explanation> ExplainProcess(const ProcessRun& run, std::optional<std::uint64_t> total_bytes,
                                                    const answers::Progress& progress);

}  // namespace ashlar::cli

#endif  // ASHLAR_ANALYZER_CLI_LAUNCH_EXPLAIN_H_
