// Prints the answer of `ashlar check` (docs/guide/check.md), as text, JSON and JUnit's XML.
//
//   std::cout << ToText(CheckTrace("train.pickle", run, {.max_ooms = 0}));
#ifndef ASHLAR_ANALYZER_REPORT_CHECK_REPORT_H_
#define ASHLAR_ANALYZER_REPORT_CHECK_REPORT_H_

#include <string>

#include "analyzer/answers/check.h"

namespace ashlar::report {

std::string ToText(const answers::CheckAnswer& report);
std::string ToJson(const answers::CheckAnswer& report);  // docs/schemas/check.schema.json
// JUnit's XML, as CI systems read it: one test case a limit. Well-formed whatever the names hold.
std::string ToJUnit(const answers::CheckAnswer& report);

}  // namespace ashlar::report

#endif  // ASHLAR_ANALYZER_REPORT_CHECK_REPORT_H_
