#include "commands/export/exported_run.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "analyzer/analyses/causes/cause.h"
#include "analyzer/replay/recorded_replay.h"
#include "commands/explain/explain.h"

namespace ashlar::exports {
namespace {

std::vector<answers::ReplaySettings> SettingsOfEach(const answers::Input& input,
                                                    const answers::ReplaySettings& settings) {
  if (settings.device.has_value() || input.snapshot() == nullptr) return {settings};
  std::vector<answers::ReplaySettings> out;
  for (const int device : replay::UsedDevices(*input.snapshot())) out.emplace_back(settings).device = device;
  return out;
}

absl::Status Explain(const answers::Input& input, const answers::ReplaySettings& settings, ExportedRun& run) {
  absl::StatusOr<std::vector<answers::Explanation>> explained = answers::Explain(input, {.replay = settings});
  if (!explained.ok()) return explained.status();
  run.explanation = std::move(explained->front());
  return absl::OkStatus();
}

}  // namespace

absl::Status ForEachRun(const answers::Input& input, const answers::ReplaySettings& settings, With with,
                        absl::FunctionRef<absl::Status(const ExportedRun&)> use) {
  for (const answers::ReplaySettings& of_device : SettingsOfEach(input, settings)) {
    absl::StatusOr<answers::TracedRun> traced = answers::TraceInput(input, of_device);
    if (!traced.ok()) return traced.status();
    ExportedRun run{*std::move(traced)};
    run.snapshot = input.snapshot();
    run.moment = analyses::MomentOf(run.traced.timeline);
    run.steps = analyses::FindSteps(run.traced.timeline, &run.traced.stacks, run.traced.annotations);
    if (with == With::kExplanation) {
      if (absl::Status status = Explain(input, of_device, run); !status.ok()) return status;
    }
    if (absl::Status status = use(run); !status.ok()) return status;
  }
  return absl::OkStatus();
}

std::size_t RunCount(const answers::Input& input, const answers::ReplaySettings& settings) {
  return SettingsOfEach(input, settings).size();
}

std::string MomentInWords(const ExportedRun& run) {
  const timeline::Timeline& timeline = run.traced.timeline;
  if (timeline.event_count() == 0) return answers::kMomentOfState;
  const bool is_failure = !timeline.oom_events().empty();
  if (run.moment == timeline::kBeforeWindow) return "the peak of allocated memory, at the start of the recorded window";
  return absl::StrCat(is_failure ? "the out-of-memory error" : "the peak of allocated memory", ", event ",
                      FormatCount(static_cast<std::uint64_t>(run.moment)));
}

}  // namespace ashlar::exports
