// What a row of a what-if says of the requests that would have come after the one that failed: as text and as JSON.
//
//   ProjectedText(row)   // "gets past; fails 1 request on: needs 20.90 GiB"
#ifndef ASHLAR_ANALYZER_REPORT_PROJECTED_H_
#define ASHLAR_ANALYZER_REPORT_PROJECTED_H_

#include <optional>
#include <string>

#include "analyzer/answers/explanation.h"
#include "analyzer/report/json_values.h"

namespace ashlar::report {

// Empty where the row does not get past the failed request, or none failed.
std::string ProjectedText(const remedies::WhatIfRow& row);
Json ProjectedJson(const std::optional<remedies::ProjectedPart>& projected);

}  // namespace ashlar::report

#endif  // ASHLAR_ANALYZER_REPORT_PROJECTED_H_
