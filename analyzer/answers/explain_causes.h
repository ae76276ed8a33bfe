// The part of an explanation that says why: the causes, and what came of taking the found ones away.
#ifndef ASHLAR_ANALYZER_ANSWERS_EXPLAIN_CAUSES_H_
#define ASHLAR_ANALYZER_ANSWERS_EXPLAIN_CAUSES_H_

#include "absl/status/status.h"
#include "analyzer/answers/explain.h"
#include "analyzer/answers/traced_run.h"

namespace ashlar::answers {

// After the accounting and the what-ifs, whose capacity they share. An error is a replay's own.
absl::Status AddCauses(const trace::Snapshot& snapshot, const ObservedRun& run, const ExplainOptions& options,
                       Explanation& out);
absl::Status AddCauses(const trace::RequestTrace& requests, const ReplayedRun& run, const ExplainOptions& options,
                       Explanation& out);
void AddCauses(const analyses::OomMessageVerdict& verdict, Explanation& out);

}  // namespace ashlar::answers

#endif  // ASHLAR_ANALYZER_ANSWERS_EXPLAIN_CAUSES_H_
