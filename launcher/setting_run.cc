#include "launcher/setting_run.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "commands/explain/suggestions.h"
#include "launcher/apart.h"
#include "launcher/rerun.h"

namespace ashlar::cli {
namespace {

std::uint64_t PeakReservedOf(const ProcessRun& run) {
  std::uint64_t out = 0;
  if (!run.torch.has_value()) return out;
  for (const TorchDevice& device : run.torch->devices) out = std::max(out, device.peak_reserved_bytes);
  return out;
}

}  // namespace

absl::StatusOr<answers::SettingRun> RunUnderSetting(const std::string& conf, const FirstRun& first,
                                                    const ProcessMemory& memory, SignalRelay& relay,
                                                    const answers::Progress& progress, const RunReport& report) {
  Rerun rerun = {absl::StrCat("under ", conf), first.launch, report.machine.text};
  rerun.launch.environment.erase("ASHLAR_HOLLOW_CALLS");  // the file is the first run's
  rerun.launch.environment["PYTORCH_CUDA_ALLOC_CONF"] = conf;
  rerun.launch.environment["PYTORCH_ALLOC_CONF"] = conf;
  const std::vector<RerunEnd> ends =
      RunAgain({rerun}, {.at_once = 1, .most_seconds = MostSecondsOf(first.seconds)}, relay, progress);
  const RerunEnd& end = ends.front();
  const bool has_failed = std::any_of(end.results.runs.begin(), end.results.runs.end(),
                                      [](const ProcessRun& run) { return !run.failures.empty(); });
  if (!end.why_not.empty() && !has_failed) return absl::UnavailableError(end.why_not);
  const ProcessRun* const run = ToExplain(end.results);
  if (run == nullptr) return absl::UnavailableError("it has no history");
  const absl::StatusOr<answers::Explanation> explanation = ExplainProcess(*run, memory, progress);
  if (!explanation.ok()) return explanation.status();
  if (!answers::RanUnder(*explanation, conf)) return absl::UnavailableError("the program sets its own");
  return answers::SettingRun{conf, end.why_not.empty(), PeakReservedOf(*run)};
}

}  // namespace ashlar::cli
