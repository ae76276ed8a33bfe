// `ashlar fit --vary` and `--goal largest-batch`: the program with other values of an argument of its own, or with
// batches of another size, each run on the card and to its end. With --goal cards a value is the number of cards too.
//
//   absl::StatusOr<Vary> vary = ReadVary("--batch-size:1..256");
//   ProgramWith({"python", "train.py", "--batch-size", "8"}, *vary, 24);   // ... "--batch-size", "24"
#ifndef ASHLAR_LAUNCHER_FIT_VARY_H_
#define ASHLAR_LAUNCHER_FIT_VARY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "commands/fit/fit.h"
#include "launcher/fit_runs.h"
#include "launcher/machine.h"

namespace ashlar::cli {

struct Vary {
  std::string argument;               // "--batch-size"; "{}": where it stands in the program's words
  std::vector<std::uint64_t> values;  // ascending; empty: a range, whose largest that fits is looked for
  std::uint64_t least = 0, most = 0;
};

// "ARGUMENT:VALUES", values as 1..256 or 1,2,4. Errors name the flag.
absl::StatusOr<Vary> ReadVary(const std::string& text);

// The value goes where {} stands, or behind the argument, as "--n 8" or "--n=8"; where neither is there, to the end.
std::vector<std::string> ProgramWith(const std::vector<std::string>& program, const Vary& vary, std::uint64_t value);

// As it is run first: with the least value where {} stands, else as it was given.
std::vector<std::string> FirstProgram(const std::vector<std::string>& program, const Vary& vary);

// What the program's own words give it; nullopt: nothing, or no number.
std::optional<std::uint64_t> ValueIn(const std::vector<std::string>& program, const Vary& vary);

// What is the same in all runs.
struct VaryAsked {
  std::vector<std::string> program;
  std::vector<std::string> with;  // changes
  answers::FitValues::Goal goal = answers::FitValues::Goal::kLargest;
  MachineFlags machine;  // of Goal::kFewest, whose values are numbers of devices
};

struct VaryLimits {
  double seconds = 0;       // for all of it
  double most_seconds = 0;  // of one run
};

// InvalidArgument where the machine cannot have as many devices.
absl::StatusOr<answers::FitValues> RunValues(const Vary& vary, const VaryAsked& asked, const VaryLimits& limits,
                                             FitRuns& runs);
// The batch of the DataLoader, or of the framework that makes it. Unavailable where none is known.
absl::StatusOr<answers::FitValues> RunBatches(const FitFacts::Batch& batch, const std::vector<std::string>& with,
                                              const VaryLimits& limits, FitRuns& runs);

}  // namespace ashlar::cli

#endif  // ASHLAR_LAUNCHER_FIT_VARY_H_
