// Explanations as JSON, one as an object, several (messages of one log) as an array. Keys and their meaning:
// docs/schemas/explain.schema.json. What is not known is null.
#ifndef ASHLAR_ANALYZER_REPORT_JSON_H_
#define ASHLAR_ANALYZER_REPORT_JSON_H_

#include <string>
#include <vector>

#include "analyzer/answers/explanation.h"
#include "analyzer/report/json_values.h"

namespace ashlar::report {

// One, to be put into a larger document.
Json ExplanationJson(const answers::Explanation& explanation);

// Two-space indentation, keys in a fixed order, a newline at the end. One value, or a list where there are several or
// `as_list` asks for one.
std::string ToJson(const std::vector<answers::Explanation>& explanations, bool as_list = false);

}  // namespace ashlar::report

#endif  // ASHLAR_ANALYZER_REPORT_JSON_H_
