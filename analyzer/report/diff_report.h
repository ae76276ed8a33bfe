// What `ashlar diff` prints: two recordings at one moment each, and what grew between them (docs/guide/diff.md).
#ifndef ASHLAR_ANALYZER_REPORT_DIFF_REPORT_H_
#define ASHLAR_ANALYZER_REPORT_DIFF_REPORT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "allocator/trace/snapshot.h"
#include "analyzer/analyses/state/state_diff.h"
#include "analyzer/report/traced_run.h"

namespace ashlar::report {

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

struct DiffReport {
  DiffInput a, b;
  analyses::StateDiff diff;
  bool has_stacks = false;  // at least one side
  bool has_phases = false;
  std::vector<trace::Note> notes;
};

// OutOfRange, which names the input, where a side does not have the moment.
absl::StatusOr<DiffReport> MakeDiff(const std::string& a_name, const TracedRun& a, const std::string& b_name,
                                    const TracedRun& b, DiffMoment moment);

// For one screen: rows beyond it are summed up in one line, so that the shown figures sum to the difference too.
std::string ToText(const DiffReport& report);
// Every row; keys and units: docs/schemas/diff.schema.json.
std::string ToJson(const DiffReport& report);

}  // namespace ashlar::report

#endif  // ASHLAR_ANALYZER_REPORT_DIFF_REPORT_H_
