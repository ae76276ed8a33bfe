// The answer of `ashlar plan` as text, and as JSON (docs/schemas/plan.schema.json).
#ifndef ASHLAR_ANALYZER_REPORT_PLAN_REPORT_H_
#define ASHLAR_ANALYZER_REPORT_PLAN_REPORT_H_

#include <string>

#include "analyzer/answers/plan.h"

namespace ashlar::report {

std::string ToText(const answers::PlanAnswer& answer);
std::string ToJson(const answers::PlanAnswer& answer);

}  // namespace ashlar::report

#endif  // ASHLAR_ANALYZER_REPORT_PLAN_REPORT_H_
