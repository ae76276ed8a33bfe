// A search over settings for one trace or several: which one setting serves them best.
//
//   absl::StatusOr<SweepResult> result = RunSweep({input}, {.threads = 4});
//   result->rows.front();      // the best; rows are in the order of advice.h
//   result->advice.paste;      // the line for the shell, nullopt where the recorded settings are best
//
// The rows and their order do not depend on the number of threads. Sizes are bytes.
#ifndef ASHLAR_ANALYZER_WHATIF_SWEEP_H_
#define ASHLAR_ANALYZER_WHATIF_SWEEP_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "analyzer/whatif/advice.h"
#include "analyzer/whatif/what_if_input.h"

namespace ashlar::whatif {

struct SweepOptions {
  std::vector<std::string> confs = {};  // these, the recorded and the default settings only; empty = search
  std::uint64_t budget_replays = 0;     // 0 = DefaultBudget
  std::size_t threads = 0;              // 0 = one a core
  // Asked between batches of replays; true ends the search with what is there.
  std::function<bool()> should_stop = {};
  // After each replay, with how many are done; from one thread at a time.
  std::function<void(std::uint64_t)> progress = {};
};

struct SweepRow {
  std::string conf;          // as for PYTORCH_CUDA_ALLOC_CONF; empty = the default settings
  bool is_baseline = false;  // each trace under its recorded settings
  bool is_default = false;   // nothing but what the recorded settings carry besides
  bool is_pareto_best = false;
  bool is_recommended = false;
  std::vector<WhatIfRow> traces;  // in the order of the inputs
  Score score;                    // of all traces together
  std::uint64_t retries = 0;      // of all traces together
  std::vector<Risk> risks;        // of all traces, each name once
};

struct SweepResult {
  std::vector<SweepRow> rows;  // best first
  std::size_t baseline = 0;    // position in rows
  Choice choice;               // row: position in rows
  Advice advice;
  bool is_search = true;               // false: only the confs that were given
  bool is_complete = false;            // every setting of the space was replayed
  bool is_stopped = false;             // by should_stop
  bool recorded_confs_differ = false;  // the baseline's row has no one conf
  std::uint64_t space_size = 0;        // settings the search could offer
  std::uint64_t budget_replays = 0;
  std::uint64_t replays = 0;
};

// By the number of requests: about 20 million in all, at least 60 settings, at most 2000.
std::uint64_t DefaultBudget(absl::Span<const WhatIfInput> inputs);

// InvalidArgument when a given conf cannot be parsed under the version of one of the traces.
absl::StatusOr<SweepResult> RunSweep(absl::Span<const WhatIfInput> inputs, const SweepOptions& options);

// What a sweep makes of its replays: rows in order, the one that is chosen, and the line to paste. A fleet, whose rows
// are replayed file by file, makes the same of its own.
//
//   SweepResult result;             // rows in any order; each row has one trace an input, the baseline is marked
//   FinishRows("", result);
//   result.rows.front();            // the best
//   result.advice.paste;

// Sets the scores; the positions of the rows, best first.
std::vector<std::size_t> RankRows(SweepResult& result);

// Adds the answer of one trace to a row, and its risks.
void AddTrace(WhatIfRow answer, SweepRow& row);

// Sorts the rows, best first, marks them and chooses one. `carried` is what every offered conf keeps.
void FinishRows(const std::string& carried, SweepResult& result);

}  // namespace ashlar::whatif

#endif  // ASHLAR_ANALYZER_WHATIF_SWEEP_H_
