// What `ashlar estimate` prints (docs/estimate.md).
#ifndef ASHLAR_ANALYZER_REPORT_ESTIMATE_REPORT_H_
#define ASHLAR_ANALYZER_REPORT_ESTIMATE_REPORT_H_

#include <string>

#include "analyzer/estimate/estimate.h"

namespace ashlar::report {

struct EstimateReport {
  std::string input;  // the name as given
  estimate::Estimate estimate;
};

std::string ToText(const EstimateReport& report);
std::string ToJson(const EstimateReport& report);  // docs/estimate.schema.json

}  // namespace ashlar::report

#endif  // ASHLAR_ANALYZER_REPORT_ESTIMATE_REPORT_H_
