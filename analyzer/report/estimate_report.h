// What `ashlar estimate` prints (docs/guide/estimate.md).
#ifndef ASHLAR_ANALYZER_REPORT_ESTIMATE_REPORT_H_
#define ASHLAR_ANALYZER_REPORT_ESTIMATE_REPORT_H_

#include <optional>
#include <string>

#include "analyzer/estimate/estimate.h"
#include "analyzer/remedies/fit.h"
#include "analyzer/remedies/levers.h"
#include "analyzer/remedies/shuffles.h"
#include "analyzer/report/json_values.h"

namespace ashlar::report {

struct EstimateReport {
  std::string input;  // the name as given
  estimate::Estimate estimate;
  // Where the report is about these they are all that the text shows.
  std::optional<remedies::ShuffleResult> shuffles = {};
  std::optional<remedies::LeverResult> levers = {};
  std::optional<remedies::Fit> fit = {};
};

// Its sections, for terminals and as JSON.
void AppendShuffles(const estimate::Estimate& of, const remedies::ShuffleResult& result, std::string& out);
void AppendPhases(const estimate::DryRun& run, std::string& out);
Json PartsJson(const estimate::MomentParts& parts, std::uint64_t reserved_bytes);
Json PhasesJson(const estimate::DryRun& run);
void AppendLevers(const estimate::Estimate& of, const remedies::LeverResult& result, std::string& out);
void AppendFit(const remedies::Fit& fit, std::string& out);
Json LeversJson(const remedies::LeverResult& result);
Json FitJson(const remedies::Fit& fit);
Json ShufflesJson(const remedies::ShuffleResult& result);

std::string ToText(const EstimateReport& report);
std::string ToJson(const EstimateReport& report);  // docs/schemas/estimate.schema.json

}  // namespace ashlar::report

#endif  // ASHLAR_ANALYZER_REPORT_ESTIMATE_REPORT_H_
