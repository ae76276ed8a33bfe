// The report of `ashlar estimate` (docs/guide/estimate.md).
#ifndef ASHLAR_ESTIMATOR_REPORT_ESTIMATE_REPORT_H_
#define ASHLAR_ESTIMATOR_REPORT_ESTIMATE_REPORT_H_

#include <optional>
#include <string>

#include "estimator/estimate.h"
#include "estimator/levers/fit.h"
#include "estimator/levers/levers.h"
#include "estimator/levers/shuffles.h"

namespace ashlar::estimate {

struct EstimateReport {
  std::string input;  // the name as given
  Estimate estimate;
  // Where the report is about these they are all that the text shows.
  std::optional<ShuffleResult> shuffles = {};
  std::optional<LeverResult> levers = {};
  std::optional<Fit> fit = {};
};

// Its sections, for terminals.
void AppendShuffles(const Estimate& of, const ShuffleResult& result, std::string& out);
void AppendPhases(const DryRun& run, std::string& out);
void AppendLevers(const Estimate& of, const LeverResult& result, std::string& out);
void AppendFit(const Fit& fit, std::string& out);

std::string ToText(const EstimateReport& report);
std::string ToJson(const EstimateReport& report);
std::string EstimateSchema();  // docs/schemas/estimate.schema.json

}  // namespace ashlar::estimate

#endif  // ASHLAR_ESTIMATOR_REPORT_ESTIMATE_REPORT_H_
