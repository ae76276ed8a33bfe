// The program run again under a setting that gets past the request it failed with: what a replay cannot know, since the
// rest of the program was not recorded, the program itself shows.
//
//   const std::optional<std::string> conf = answers::SettingToTry(*report.explanation);
//   absl::StatusOr<answers::SettingRun> tried = RunUnderSetting(*conf, first, memory, relay, progress, report);
//
// The first run's answer stays as it is, whatever becomes of this one.
#ifndef ASHLAR_LAUNCHER_SETTING_RUN_H_
#define ASHLAR_LAUNCHER_SETTING_RUN_H_

#include <string>

#include "absl/status/statusor.h"
#include "commands/explain/what_ifs.h"
#include "launcher/card_runs.h"
#include "launcher/dry_run_report.h"
#include "launcher/explain.h"

namespace ashlar::cli {

// What came of it. Unavailable where it was not run to an answer, and why.
absl::StatusOr<answers::SettingRun> RunUnderSetting(const std::string& conf, const FirstRun& first,
                                                    const ProcessMemory& memory, SignalRelay& relay,
                                                    const answers::Progress& progress, const RunReport& report);

}  // namespace ashlar::cli

#endif  // ASHLAR_LAUNCHER_SETTING_RUN_H_
