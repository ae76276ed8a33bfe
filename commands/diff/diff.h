// The answer of `ashlar diff`: two recordings at one moment each, and what grew between them (docs/guide/diff.md).
#ifndef ASHLAR_COMMANDS_DIFF_DIFF_H_
#define ASHLAR_COMMANDS_DIFF_DIFF_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "allocator/trace/snapshot.h"
#include "analyzer/analyses/holders/held_by_name.h"
#include "analyzer/analyses/holders/name_diff.h"
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
  std::optional<analyses::HeldByName> held = {};  // then; nullopt: the input has no names
};

struct DiffAnswer {
  DiffInput a, b;
  analyses::StateDiff diff;
  std::optional<std::vector<analyses::NameDiffRow>> by_name = {};  // nullopt: a side has no names
  bool has_stacks = false;                                         // at least one side
  bool has_phases = false;
  std::vector<trace::Note> notes;
};

// OutOfRange, which names the input, where a side does not have the moment.
absl::StatusOr<DiffAnswer> MakeDiff(const std::string& a_name, const TracedRun& a, const std::string& b_name,
                                    const TracedRun& b, DiffMoment moment);

}  // namespace ashlar::answers

namespace ashlar::report {

// Prints the answer of `ashlar diff` (docs/guide/diff.md): as text, as Markdown, and as JSON by DiffSchema, which is
// docs/schemas/diff.schema.json.
//
//   std::cout << ToText(*MakeDiff("a.pickle", a, "b.pickle", b, DiffMoment::kPeak));

// For one screen: rows beyond it are summed up in one line, so that the shown figures sum to the difference too.
std::string ToText(const answers::DiffAnswer& report);
// The same rows, to paste into an issue.
std::string ToMarkdown(const answers::DiffAnswer& report);
// Every row.
std::string ToJson(const answers::DiffAnswer& report);
std::string DiffSchema();

}  // namespace ashlar::report

#endif  // ASHLAR_COMMANDS_DIFF_DIFF_H_
