// The page of `ashlar fit --report`: the rows, and the run of the set that was found, with its history. Where none was
// found it is the run of the program as it is.
#ifndef ASHLAR_LAUNCHER_FIT_PAGE_H_
#define ASHLAR_LAUNCHER_FIT_PAGE_H_

#include <string>

#include "absl/status/statusor.h"
#include "commands/fit/fit.h"
#include "commands/shared/replay_settings.h"
#include "launcher/fit_runs.h"
#include "launcher/machine.h"

namespace ashlar::cli {

struct FitPageAsked {
  const HollowMachine& card;
  double most_seconds = 0;  // of the run
};

// Runs the program once more. A run without a history leaves the rows alone on the page.
absl::StatusOr<std::string> FitPage(const FitPageAsked& asked, const answers::FitAnswer& answer,
                                    const answers::Progress& progress, FitRuns& runs);

}  // namespace ashlar::cli

#endif  // ASHLAR_LAUNCHER_FIT_PAGE_H_
