// Inputs of a command: their bytes, and, for the commands that take one (check, diff, bound), the trace in them.
#ifndef ASHLAR_ANALYZER_CLI_LOAD_TRACE_H_
#define ASHLAR_ANALYZER_CLI_LOAD_TRACE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "analyzer/cli/command.h"
#include "analyzer/report/traced_run.h"

namespace ashlar::cli {

// The bytes of an input. Errors name it. Has the progress told, and what memory it takes should that not suffice.
absl::StatusOr<std::string> LoadBytes(const std::string& input, const report::ExplainOptions& options);

// The options with the input's name before what the progress says of it.
report::ExplainOptions NamingProgress(const std::string& input, report::ExplainOptions options);

// Errors name the input; OutOfRange where a flag does not go with it: a snapshot is taken as it was recorded.
absl::StatusOr<report::TracedRun> LoadTrace(const std::string& input, const ReplayFlags& flags,
                                            const report::ExplainOptions& options);

// Each device of the input's trace.
absl::StatusOr<std::vector<report::TracedRun>> LoadDevices(const std::string& input, const ReplayFlags& flags,
                                                           const report::ExplainOptions& options);

// The same for bytes that were read from `input`.
absl::StatusOr<report::TracedRun> TraceOf(const std::string& input, absl::string_view bytes, const ReplayFlags& flags,
                                          const report::ExplainOptions& options);

// Fail() with the exit code that such an error has.
int FailLoad(const absl::Status& status);

}  // namespace ashlar::cli

#endif  // ASHLAR_ANALYZER_CLI_LOAD_TRACE_H_
