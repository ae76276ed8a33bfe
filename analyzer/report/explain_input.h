// Explains the bytes of an input, of whichever kind they are.
#ifndef ASHLAR_ANALYZER_REPORT_EXPLAIN_INPUT_H_
#define ASHLAR_ANALYZER_REPORT_EXPLAIN_INPUT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "analyzer/report/explain.h"
#include "analyzer/report/explanation.h"

namespace ashlar::report {

// One, but for a text with several different out-of-memory messages. Errors say what is wrong with the input and where;
// OutOfRange: an option does not go with it.
absl::StatusOr<std::vector<Explanation>> ExplainInput(const std::string& bytes, const ExplainOptions& options);

// All of them as text, a blank line between two, or as JSON.
std::string PrintExplanations(const std::vector<Explanation>& explanations, bool as_json);

}  // namespace ashlar::report

#endif  // ASHLAR_ANALYZER_REPORT_EXPLAIN_INPUT_H_
