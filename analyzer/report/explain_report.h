// All explanations of one input.
//
//   std::cout << PrintExplanations(*answers::ExplainBytes(bytes, {}), /*as_json=*/false);
#ifndef ASHLAR_ANALYZER_REPORT_EXPLAIN_REPORT_H_
#define ASHLAR_ANALYZER_REPORT_EXPLAIN_REPORT_H_

#include <string>
#include <vector>

#include "analyzer/answers/explanation.h"

namespace ashlar::report {

// As text, a blank line between two, or as JSON: one value for one explanation, else a list; `as_list`: always a list.
std::string PrintExplanations(const std::vector<answers::Explanation>& explanations, bool as_json,
                              bool as_list = false);

}  // namespace ashlar::report

#endif  // ASHLAR_ANALYZER_REPORT_EXPLAIN_REPORT_H_
