// The answer of `ashlar sweep`, as text and as JSON (docs/schemas/sweep.schema.json): the same numbers in both.
//
//   std::cout << ToText(SweepAnswer{inputs, *remedies::RunSweep(inputs, {})});
#ifndef ASHLAR_ANALYZER_REPORT_SWEEP_REPORT_H_
#define ASHLAR_ANALYZER_REPORT_SWEEP_REPORT_H_

#include <string>

#include "analyzer/answers/sweep.h"

namespace ashlar::report {

std::string ToText(const answers::SweepAnswer& report);
std::string ToJson(const answers::SweepAnswer& report);

}  // namespace ashlar::report

#endif  // ASHLAR_ANALYZER_REPORT_SWEEP_REPORT_H_
