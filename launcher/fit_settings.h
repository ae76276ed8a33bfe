// The best setting of the allocator for runs that `ashlar fit` made, by a replay of their requests on the card.
//
//   answer.settings = BestSettings({card, most_seconds, seconds_left}, answer, search.proof(), progress, runs);
//
// Asked of the set that was found, whose proof has a history, and of what needs about as much as the card has: a tenth
// more or less, where a setting decides. That is run once more, whole and in ample room.
#ifndef ASHLAR_LAUNCHER_FIT_SETTINGS_H_
#define ASHLAR_LAUNCHER_FIT_SETTINGS_H_

#include <vector>

#include "commands/fit/fit.h"
#include "launcher/explain.h"
#include "launcher/fit_runs.h"
#include "launcher/machine.h"

namespace ashlar::cli {

struct SettingsAsked {
  const HollowMachine& card;
  double most_seconds = 0;  // of one run
  double seconds_left = 0;  // none is begun without
};

std::vector<answers::FitSetting> BestSettings(const SettingsAsked& asked, const answers::FitAnswer& answer,
                                              const RerunEnd& proof, const answers::Progress& progress, FitRuns& runs);

// What else the program could change, by the causes of its failure: it is run once more on the card, with its history.
std::vector<answers::FitEstimate> Estimates(const SettingsAsked& asked, const answers::FitAnswer& answer,
                                            const answers::Progress& progress, FitRuns& runs);

}  // namespace ashlar::cli

#endif  // ASHLAR_LAUNCHER_FIT_SETTINGS_H_
