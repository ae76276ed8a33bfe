// What `ashlar sweep` answers, as text and as JSON (docs/schemas/sweep.schema.json): the same numbers in both.
//
//   std::vector<remedies::WhatIfInput> inputs = {*ReadSweepInput("snapshot.pickle", bytes, options)};
//   SweepReport report{inputs, *remedies::RunSweep(inputs, {})};
//   std::cout << ToText(report);
#ifndef ASHLAR_ANALYZER_REPORT_SWEEP_REPORT_H_
#define ASHLAR_ANALYZER_REPORT_SWEEP_REPORT_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "analyzer/remedies/sweep.h"
#include "analyzer/report/explain.h"

namespace ashlar::report {

struct SweepReport {
  std::vector<remedies::WhatIfInput> inputs;
  remedies::SweepResult result;
  std::size_t rows_shown = 12;  // in the text, besides those that are always shown
};

// InvalidArgument for bytes that are no trace or have no allocation to replay; OutOfRange for a device that is not
// there, or one wished of a request trace.
absl::StatusOr<remedies::WhatIfInput> ReadSweepInput(const std::string& name, absl::string_view bytes,
                                                     const ExplainOptions& options);

// What is to be said of traces: how they were replayed, how faithful that is, and the inputs' own notes. What holds
// for several is there once.
struct SweepNote {
  std::string name;
  std::string message;
  std::vector<std::size_t> traces;    // positions in the inputs, ascending
  std::vector<std::uint64_t> counts;  // of each of them
};

// In the order of the first trace that each holds for.
std::vector<SweepNote> NotesOf(const SweepReport& report);

std::string ToText(const SweepReport& report);
std::string ToJson(const SweepReport& report);

}  // namespace ashlar::report

#endif  // ASHLAR_ANALYZER_REPORT_SWEEP_REPORT_H_
