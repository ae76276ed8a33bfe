// The answer of `ashlar sweep`: which settings would have served one trace, or several together.
//
//   std::vector<whatif::WhatIfInput> inputs = {*SweepInputOf("snapshot.pickle", *LoadInput(bytes), settings)};
//   absl::StatusOr<SweepAnswer> answer = Sweep(inputs, {});
//   std::vector<SweepNote> notes = NotesOf(*answer);
#ifndef ASHLAR_COMMANDS_SWEEP_SWEEP_H_
#define ASHLAR_COMMANDS_SWEEP_SWEEP_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "analyzer/whatif/sweep.h"
#include "analyzer/whatif/what_if_input.h"
#include "commands/shared/input.h"
#include "commands/shared/replay_settings.h"

namespace ashlar::answers {

using whatif::SweepOptions;
using whatif::WhatIfInput;

struct SweepAnswer {
  std::vector<WhatIfInput> inputs;
  whatif::SweepResult result;
  std::size_t rows_shown = 12;  // in the text, besides those that are always shown
};

// InvalidArgument for an input that has no allocation to replay; OutOfRange for a device that is not there, or one
// asked for a request trace.
absl::StatusOr<WhatIfInput> SweepInputOf(const std::string& name, const Input& input, const ReplaySettings& settings);

// InvalidArgument for a conf that cannot be parsed.
absl::StatusOr<SweepAnswer> Sweep(std::vector<WhatIfInput> inputs, const SweepOptions& options);

// What is to be said of traces: how they were replayed, how faithful that is, and the inputs' own notes. What holds
// for several is there once.
struct SweepNote {
  std::string name;
  std::string message;
  std::vector<std::size_t> traces;    // positions in the inputs, ascending
  std::vector<std::uint64_t> counts;  // of each of them
};

// In the order of the first trace that each holds for.
std::vector<SweepNote> NotesOf(const SweepAnswer& answer);

}  // namespace ashlar::answers

namespace ashlar::report {

// The answer of `ashlar sweep`, as text, as Markdown and as JSON: the same numbers in all. SweepSchema is
// docs/schemas/sweep.schema.json.
//
//   std::cout << ToText(SweepAnswer{inputs, *whatif::RunSweep(inputs, {})});

std::string ToText(const answers::SweepAnswer& report);
std::string ToMarkdown(const answers::SweepAnswer& report);
std::string ToJson(const answers::SweepAnswer& report);
std::string SweepSchema();

}  // namespace ashlar::report

#endif  // ASHLAR_COMMANDS_SWEEP_SWEEP_H_
