// The search of `ashlar fit`: each change alone, then sets of them, the cheapest first, until one fits.
//
//   SetSearch search(runs, most_seconds, budget_seconds, answer);
//   search.RunRows();
//   search.CountRows();
//   search.FindSet();    // answer.set, answer.sets, answer.untried; search.proof()
//
// What it tried, and what it left, it adds to the answer.
#ifndef ASHLAR_LAUNCHER_FIT_SEARCH_H_
#define ASHLAR_LAUNCHER_FIT_SEARCH_H_

#include <chrono>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "commands/fit/fit.h"
#include "commands/fit/fit_sets.h"
#include "launcher/fit_runs.h"

namespace ashlar::cli {

class SetSearch {
 public:
  // No run takes longer than `most_seconds`; none is begun after `budget` seconds, but for the proof of a set.
  SetSearch(FitRuns& runs, double most_seconds, double budget, answers::FitAnswer& answer)
      : runs_(runs), most_seconds_(most_seconds), budget_(budget), answer_(answer) {}

  // The program as it is on the card, and each change alone. Unavailable where the program does not come to its end
  // when it is run again as it is.
  absl::Status RunRows();
  // What a step computes and moves, of the program as it is and of each row that fits: the order of sets goes by it. It
  // is outside the budget.
  void CountRows();
  void FindSet();
  // The same of the set that was found, where it is of several changes.
  void CountSet();
  double SecondsLeft() const;
  // The run that proved the set, with its history.
  const RerunEnd& proof() const { return proof_; }

 private:
  bool IsOver() const { return SecondsLeft() < 0; }
  double Most() const;
  bool FitsAlone(const answers::FitSet& set) const;
  void TryFree();
  std::vector<answers::FitSet> SetsThatMayFit();
  void TrySets(const std::vector<answers::FitSet>& sets);
  const answers::FitRow* KnownRow(const std::vector<std::string>& changes) const;
  std::vector<answers::FitRow> RowsOf(const std::vector<std::vector<std::string>>& sets);
  answers::FitRow WithoutUseless(const answers::FitRow& row);
  bool Prove(const answers::FitRow& row);

  FitRuns& runs_;
  const double most_seconds_;
  double budget_;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  answers::FitAnswer& answer_;
  RerunEnd proof_;
};

}  // namespace ashlar::cli

#endif  // ASHLAR_LAUNCHER_FIT_SEARCH_H_
