#include "analyzer/report/json_values.h"
#include "analyzer/report/projected.h"
#include "analyzer/report/sweep_report.h"

namespace ashlar::report {
namespace {

Json RiskJson(const remedies::Risk& risk) {
  return {{"name", risk.name},
          {"level", std::string(remedies::RiskLevelName(risk.level))},
          {"sentence", risk.sentence},
          {"source", risk.source}};
}

Json TraceRowJson(const remedies::WhatIfRow& row) {
  return {{"peak_reserved_bytes", row.peak_reserved_bytes},
          {"peak_allocated_bytes", row.peak_allocated_bytes},
          {"ooms", row.ooms},
          {"retries", row.retries},
          {"driver_calls", row.driver_calls},
          {"estimated_driver_ns", row.cost_ns},
          {"feasible", OrNull(row.feasible)},
          {"gets_past", OrNull(row.gets_past)},
          {"projected", ProjectedJson(row.projected)}};
}

Json RowJson(const answers::SweepAnswer& report, const remedies::SweepRow& row) {
  const bool has_no_conf = row.is_baseline && report.result.recorded_confs_differ;
  Json out = {{"conf", has_no_conf ? Json(nullptr) : Json(row.conf)},
              {"is_recorded_setting", row.is_baseline},
              {"is_default", row.is_default},
              {"is_pareto_best", row.is_pareto_best},
              {"is_recommended", row.is_recommended},
              {"failing_traces", row.score.failing_traces},
              {"ooms", row.score.ooms},
              {"worst_regret", row.score.regret},
              {"driver_calls", row.score.driver_calls},
              {"estimated_driver_ns", row.score.cost_ns},
              {"retries", row.retries},
              {"risk", std::string(remedies::RiskLevelName(row.score.risk))}};
  out["risks"] = Json::Array();
  for (const remedies::Risk& risk : row.risks) out["risks"].Append(RiskJson(risk));
  out["traces"] = Json::Array();
  for (const remedies::WhatIfRow& trace : row.traces) out["traces"].Append(TraceRowJson(trace));
  return out;
}

Json InputJson(const answers::SweepAnswer& report, std::size_t trace) {
  const remedies::WhatIfInput& input = report.inputs[trace];
  Json out = {{"name", input.name},
              {"source", input.source},
              {"requests", input.requests.requests.size()},
              {"recorded_conf", report.result.rows[report.result.baseline].traces[trace].conf},
              {"compat", std::string(policy::CompatName(input.settings.baseline.compat))},
              {"capacity_bytes", OrNull(input.settings.capacity_bytes)},
              {"recorded_peak_reserved_bytes", OrNull(input.recorded_peak_reserved_bytes)}};
  out["fidelity"] = nullptr;
  if (input.fidelity.has_value()) {
    out["fidelity"] = {{"matched", input.fidelity->matched},
                       {"total", input.fidelity->total},
                       {"is_exact", input.fidelity->IsExact()}};
  }
  return out;
}

}  // namespace

std::string ToJson(const answers::SweepAnswer& report) {
  const remedies::SweepResult& result = report.result;
  Json out;
  out["paste"] = OrNull(result.advice.paste);
  out["advice"] = result.advice.sentence;
  out["is_search"] = result.is_search;
  out["is_complete"] = result.is_complete;
  out["is_stopped"] = result.is_stopped;
  out["space_size"] = result.is_search ? Json(result.space_size) : Json(nullptr);
  out["budget_replays"] = result.is_search ? Json(result.budget_replays) : Json(nullptr);
  out["replays"] = result.replays;
  out["traces"] = Json::Array();
  for (std::size_t trace = 0; trace < report.inputs.size(); ++trace) out["traces"].Append(InputJson(report, trace));
  out["rows"] = Json::Array();
  for (const remedies::SweepRow& row : result.rows) out["rows"].Append(RowJson(report, row));
  out["notes"] = Json::Array();
  for (const answers::SweepNote& note : answers::NotesOf(report)) {
    out["notes"].Append(
        {{"name", note.name}, {"message", note.message}, {"traces", note.traces}, {"counts", note.counts}});
  }
  return out.ToText();
}

}  // namespace ashlar::report
