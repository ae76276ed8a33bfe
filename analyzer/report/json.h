// An explanation as JSON; keys and their meaning: docs/explain.schema.json. What is not known is null.
#ifndef ASHLAR_ANALYZER_REPORT_JSON_H_
#define ASHLAR_ANALYZER_REPORT_JSON_H_

#include <string>

#include "analyzer/report/explanation.h"

namespace ashlar::report {

// Two-space indentation, keys in a fixed order, a newline at the end.
std::string ToJson(const Explanation& explanation);

}  // namespace ashlar::report

#endif  // ASHLAR_ANALYZER_REPORT_JSON_H_
