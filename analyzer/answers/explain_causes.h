// The part of an explanation that says why: the causes, and what came of taking the found ones away.
#ifndef ASHLAR_ANALYZER_ANSWERS_EXPLAIN_CAUSES_H_
#define ASHLAR_ANALYZER_ANSWERS_EXPLAIN_CAUSES_H_

#include "absl/status/status.h"
#include "analyzer/analyses/causes/cause.h"
#include "analyzer/answers/explain.h"
#include "analyzer/answers/traced_run.h"

namespace ashlar::answers {

// What the causes look at, made once for all parts of an explanation. What is given must outlive it.
analyses::CauseContext CausesOf(const trace::Snapshot& snapshot, const ObservedRun& run);
analyses::CauseContext CausesOf(const ReplayedRun& run);

// After the accounting and the what-ifs, whose capacity they share. An error is a replay's own.
absl::Status AddCauses(analyses::CauseContext context, const ObservedRun& run, const ExplainOptions& options,
                       Explanation& out);
absl::Status AddCauses(analyses::CauseContext context, const trace::RequestTrace& requests,
                       const ExplainOptions& options, Explanation& out);
void AddCauses(const analyses::OomMessageVerdict& verdict, Explanation& out);

}  // namespace ashlar::answers

#endif  // ASHLAR_ANALYZER_ANSWERS_EXPLAIN_CAUSES_H_
