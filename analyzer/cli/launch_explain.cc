#include "analyzer/cli/launch_explain.h"

#include <string>
#include <utility>
#include <vector>

#include "analyzer/answers/explain.h"
#include "analyzer/cli/load_trace.h"

namespace ashlar::cli {

const ProcessRun* ToExplain(const RunResults& results) {
  const ProcessRun* out = nullptr;
  for (const ProcessRun& run : results.runs) {
    if (!run.failures.empty()) return &run;
    if (run.history.empty()) continue;
    if (out == nullptr || run.PeakBytes() > out->PeakBytes()) out = &run;
  }
  return out;
}

absl::StatusOr<answers::Explanation> ExplainProcess(const ProcessRun& run, std::optional<std::uint64_t> total_bytes,
                                                    const answers::Progress& progress) {
  answers::ExplainOptions options;
  options.replay.progress = progress;
  if (!run.failures.empty()) options.replay.capacity_bytes = total_bytes;
  const absl::StatusOr<std::string> bytes =
      LoadBytes(run.failures.empty() ? run.history : run.failures.back(), options.replay);
  if (!bytes.ok()) return bytes.status();
  absl::StatusOr<std::vector<answers::Explanation>> explanations = answers::ExplainBytes(*bytes, options);
  if (!explanations.ok()) return explanations.status();
  return std::move(explanations->front());
}

}  // namespace ashlar::cli
