// Prints the answer of `ashlar diff` (docs/guide/diff.md), as text and as JSON.
//
//   std::cout << ToText(*MakeDiff("a.pickle", a, "b.pickle", b, DiffMoment::kPeak));
#ifndef ASHLAR_ANALYZER_REPORT_DIFF_REPORT_H_
#define ASHLAR_ANALYZER_REPORT_DIFF_REPORT_H_

#include <string>

#include "analyzer/answers/diff.h"

namespace ashlar::report {

// For one screen: rows beyond it are summed up in one line, so that the shown figures sum to the difference too.
std::string ToText(const answers::DiffAnswer& report);
// Every row; keys and units: docs/schemas/diff.schema.json.
std::string ToJson(const answers::DiffAnswer& report);

}  // namespace ashlar::report

#endif  // ASHLAR_ANALYZER_REPORT_DIFF_REPORT_H_
