// The roles of a world of ranks, each run alone: which were, what each took, and which decides.
//
//   absl::StatusOr<...> first = ...;                                     // rank 0 has run: report is of it
//   const RoleEnds ends = RunRoles(choice, folder, first, relay, progress, report);
//   report.ranks->roles[report.ranks->worst].rank;                       // and report is of that role now
#ifndef ASHLAR_LAUNCHER_RANK_RUNS_H_
#define ASHLAR_LAUNCHER_RANK_RUNS_H_

#include <functional>
#include <string>
#include <vector>

#include "launcher/card_runs.h"
#include "launcher/dry_run_report.h"
#include "launcher/rank_choice.h"
#include "launcher/rerun.h"

namespace ashlar::cli {

// The runs of other roles than the first: their files stay as long as this.
using RoleEnds = std::vector<RerunEnd>;

// The folder in the first run's that its ranks share.
std::string RanksFolder(const std::string& run_folder);

// Runs the other roles, and makes `report` and `first` those of the role that decides: one that found no memory, else
// one that did not come to its end, else the one that takes most.
RoleEnds RunRoles(const RankChoice& choice, const std::string& run_folder, FirstRun& first, SignalRelay& relay,
                  const std::function<void(const std::string&)>& progress, RunReport& report);

}  // namespace ashlar::cli

#endif  // ASHLAR_LAUNCHER_RANK_RUNS_H_
