// Prints the answer of `ashlar bound` (docs/guide/bound.md), as text and as JSON: the same numbers in both.
//
//   std::cout << ToText(*BoundOfTrace("train.pickle", run, max_steps));
#ifndef ASHLAR_ANALYZER_REPORT_BOUND_REPORT_H_
#define ASHLAR_ANALYZER_REPORT_BOUND_REPORT_H_

#include <string>

#include "analyzer/answers/bound.h"

namespace ashlar::report {

std::string ToText(const answers::BoundAnswer& report);
std::string ToJson(const answers::BoundAnswer& report);  // docs/schemas/bound.schema.json

}  // namespace ashlar::report

#endif  // ASHLAR_ANALYZER_REPORT_BOUND_REPORT_H_
