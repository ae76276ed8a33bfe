// `ashlar fit --goal cards`: the least card of the table that has room for the program, as it is and with changes.
//
//   answer.cards = RunCards(machine_flags, most_seconds, budget_seconds, runs, answer);
//
// Each is run in ample room, and its peak names the least card; the program as it is, and what needs least, are then
// run as that card, on it, and where that fails as the next one.
#ifndef ASHLAR_LAUNCHER_FIT_CARDS_H_
#define ASHLAR_LAUNCHER_FIT_CARDS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "commands/fit/fit.h"
#include "launcher/fit_runs.h"
#include "launcher/machine.h"

namespace ashlar::cli {

// With the changes of answer.with, where there are any, and else as it is, with each change alone, and with those that
// help together: the last row is the one that needs least. Errors: a flag of the machine.
absl::StatusOr<std::vector<answers::FitCard>> RunCards(const MachineFlags& flags, double most_seconds, double budget,
                                                       FitRuns& runs, const answers::FitAnswer& answer);

}  // namespace ashlar::cli

#endif  // ASHLAR_LAUNCHER_FIT_CARDS_H_
