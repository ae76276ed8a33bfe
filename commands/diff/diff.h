// The answer of `ashlar diff`: two recordings at one moment each, and what grew between them (docs/guide/diff.md).
#ifndef ASHLAR_COMMANDS_DIFF_DIFF_H_
#define ASHLAR_COMMANDS_DIFF_DIFF_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "allocator/trace/snapshot.h"
#include "analyzer/analyses/state/state_accounting.h"
#include "commands/shared/traced_run.h"

namespace ashlar::answers {

enum class DiffMoment {
  kPeak,  // of allocated memory
  kOom,   // the last request that failed
  kEnd,
};

struct DiffInput {
  std::string name;
  std::string source;
  std::string moment;
};

struct DiffAnswer {
  DiffInput a, b;
  analyses::StateDiff diff;
  bool has_stacks = false;  // at least one side
  bool has_phases = false;
  std::vector<trace::Note> notes;
};

// OutOfRange, which names the input, where a side does not have the moment.
absl::StatusOr<DiffAnswer> MakeDiff(const std::string& a_name, const TracedRun& a, const std::string& b_name,
                                    const TracedRun& b, DiffMoment moment);

}  // namespace ashlar::answers

namespace ashlar::report {

// Prints the answer of `ashlar diff` (docs/guide/diff.md), as text and as JSON.
//
//   std::cout << ToText(*MakeDiff("a.pickle", a, "b.pickle", b, DiffMoment::kPeak));

// For one screen: rows beyond it are summed up in one line, so that the shown figures sum to the difference too.
std::string ToText(const answers::DiffAnswer& report);
// Every row; keys and units: docs/schemas/diff.schema.json.
std::string ToJson(const answers::DiffAnswer& report);

}  // namespace ashlar::report

#endif  // ASHLAR_COMMANDS_DIFF_DIFF_H_
