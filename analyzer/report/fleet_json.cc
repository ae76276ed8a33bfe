#include <string>
#include <vector>

#include "analyzer/report/fleet_report.h"
#include "analyzer/report/json_values.h"

namespace ashlar::report {
namespace {

using answers::FleetAnswer;
using answers::FleetMember;
using answers::Members;
using answers::RankSummary;

// Members as their positions in "ranks".
Json MembersJson(const Members& members) { return Json(members); }

Json RankCausesJson(const RankSummary& summary) {
  Json out = Json::Array();
  for (const answers::RankCause& cause : summary.causes) {
    out.Append({{"name", cause.name},
                {"confidence", cause.confidence},
                {"bytes", cause.bytes},
                {"needs_a_change", cause.is_sickness},
                {"line", TextOrNull(cause.line)}});
  }
  return out;
}

Json RankFailureJson(const std::optional<answers::RankFailure>& failure) {
  if (!failure.has_value()) return nullptr;
  return {{"time_us", OrNull(failure->time_us)},
          {"request_bytes", OrNull(failure->request_bytes)},
          {"verdict", failure->verdict}};
}

Json RankGrowthJson(const std::optional<answers::RankGrowth>& growth) {
  if (!growth.has_value()) return nullptr;
  return {{"bytes_per_step", growth->bytes_per_step}, {"bytes", growth->bytes}, {"line", TextOrNull(growth->line)}};
}

Json MemberJson(const FleetMember& member) {
  static const RankSummary kNone;  // all of it null
  const bool is_used = member.summary.has_value();
  const RankSummary& s = is_used ? *member.summary : kNone;
  return {{"rank", member.rank},
          {"name", member.name},
          {"file", member.path},
          {"file_bytes", member.file_bytes},
          {"error", TextOrNull(member.error)},
          {"source", TextOrNull(s.source)},
          {"headline", TextOrNull(s.headline)},
          {"device", OrNull(s.device)},
          {"events", is_used ? Json(s.events) : Json(nullptr)},
          {"steps", is_used ? Json(s.steps) : Json(nullptr)},
          {"failure", RankFailureJson(s.failure)},
          {"peak_allocated_bytes", OrNull(s.peak_allocated_bytes)},
          {"peak_reserved_bytes", OrNull(s.peak_reserved_bytes)},
          {"stranded_bytes", OrNull(s.stranded_bytes)},
          {"total_bytes", OrNull(s.total_bytes)},
          {"compat", TextOrNull(s.compat)},
          {"conf", s.compat.empty() ? Json(nullptr) : Json(s.conf)},
          {"causes", RankCausesJson(s)},
          {"growth", RankGrowthJson(s.growth)},
          {"addresses_matched", OrNull(s.addresses_matched)},
          {"addresses_total", OrNull(s.addresses_total)}};
}

template <typename Rows, typename ToRow>
Json FleetList(const Rows& rows, ToRow to_row) {
  Json out = Json::Array();
  for (const auto& row : rows) out.Append(to_row(row));
  return out;
}

Json FleetFailureJson(const answers::FleetFailure& failure) {
  return {{"member", failure.member}, {"after_us", OrNull(failure.after_us)}};
}

Json StageJson(const answers::FleetStage& stage) {
  return {{"members", MembersJson(stage.members)},
          {"median_peak_allocated_bytes", stage.median_allocated_bytes},
          {"median_peak_reserved_bytes", stage.median_reserved_bytes}};
}

Json OutlierJson(const answers::FleetOutlier& outlier) {
  return {{"member", outlier.member},
          {"figure", outlier.figure},
          {"bytes", outlier.bytes},
          {"median_bytes", outlier.median_bytes},
          {"spread_bytes", outlier.spread_bytes},
          {"stage", OrNull(outlier.stage)}};
}

Json FleetCauseJson(const answers::FleetCause& cause) {
  return {{"name", cause.name},
          {"sentence", cause.sentence},
          {"members", MembersJson(cause.members)},
          {"first_of", MembersJson(cause.first_of)},
          {"failed", MembersJson(cause.failed)},
          {"median_bytes", cause.median_bytes},
          {"most_bytes", cause.most_bytes},
          {"line", TextOrNull(cause.line)},
          {"line_members", cause.line_members}};
}

Json FleetGrowthJson(const answers::FleetGrowth& growth) {
  return {{"members", MembersJson(growth.members)},
          {"least_bytes_per_step", growth.least_bytes_per_step},
          {"most_bytes_per_step", growth.most_bytes_per_step},
          {"line", TextOrNull(growth.line)}};
}

Json FleetSettingsJson(const answers::FleetSettings& settings) {
  return {{"conf", settings.conf},
          {"compat", settings.compat},
          {"total_bytes", OrNull(settings.total_bytes)},
          {"members", MembersJson(settings.members)}};
}

Json TriedRowJson(const remedies::SweepResult& result, const remedies::SweepRow& row) {
  const bool has_no_conf = row.is_baseline && result.recorded_confs_differ;
  Json out = {{"conf", has_no_conf ? Json(nullptr) : Json(row.conf)},
              {"is_recorded_setting", row.is_baseline},
              {"is_recommended", row.is_recommended},
              {"failing_members", row.score.failing_traces},
              {"ooms", row.score.ooms},
              {"worst_regret", row.score.regret},
              {"driver_calls", row.score.driver_calls},
              {"estimated_driver_ns", row.score.cost_ns},
              {"retries", row.retries},
              {"risk", std::string(remedies::RiskLevelName(row.score.risk))}};
  out["peak_reserved_bytes"] = Json::Array();
  for (const remedies::WhatIfRow& trace : row.traces) out["peak_reserved_bytes"].Append(trace.peak_reserved_bytes);
  out["risks"] = FleetList(row.risks, [](const remedies::Risk& risk) -> Json {
    return {{"name", risk.name}, {"sentence", risk.sentence}, {"source", risk.source}};
  });
  return out;
}

Json TriedJson(const std::optional<answers::FleetTried>& tried) {
  if (!tried.has_value()) return nullptr;
  const remedies::SweepResult& result = tried->result;
  return {{"members", MembersJson(tried->members)},
          {"advice", result.advice.sentence},
          {"paste", OrNull(result.advice.paste)},
          {"replays", result.replays},
          {"rows", FleetList(result.rows, [&](const auto& row) { return TriedRowJson(result, row); })}};
}

const char* ClockName(answers::FleetClock clock) {
  switch (clock) {
    case answers::FleetClock::kCommon:
      return "common";
    case answers::FleetClock::kOwn:
      return "own";
    case answers::FleetClock::kEvents:
      return "events";
  }
  return "";
}

// One text, so that a row is a line: "0 12 900 -", - outside the rank's window.
std::string SharesText(const std::vector<std::optional<std::uint16_t>>& shares) {
  std::string out;
  for (const std::optional<std::uint16_t>& share : shares) {
    if (!out.empty()) out += ' ';
    out += share.has_value() ? std::to_string(*share) : "-";
  }
  return out;
}

Json HeatJson(const FleetAnswer& answer) {
  const bool has_times = answer.clock != answers::FleetClock::kEvents;
  return {{"clock", ClockName(answer.clock)},
          {"begin_us", has_times ? Json(answer.heat.begin_us) : Json(nullptr)},
          {"end_us", has_times ? Json(answer.heat.end_us) : Json(nullptr)},
          {"full_bytes", answer.heat.full_bytes},
          {"bins", answers::kFleetBins},
          {"rows", FleetList(answer.heat.rows, [](const answers::FleetHeat::Row& row) -> Json {
             return {{"member", row.member},
                     {"allocated", SharesText(row.allocated)},
                     {"reserved", SharesText(row.reserved)}};
           })}};
}

}  // namespace

std::string ToJson(const FleetAnswer& answer) {
  Json out;
  out["answer"] = answer.sentences;
  out["paste"] = answer.tried.has_value() ? OrNull(answer.tried->result.advice.paste) : Json(nullptr);
  out["ranks_assumed"] = answer.ranks_assumed;
  out["failures_in_order"] = answer.failures_in_order;
  out["failures"] = FleetList(answer.failures, FleetFailureJson);
  out["stages"] = FleetList(answer.stages, StageJson);
  out["outliers"] = FleetList(answer.outliers, OutlierJson);
  out["causes"] = FleetList(answer.causes, FleetCauseJson);
  out["growths"] = FleetList(answer.growths, FleetGrowthJson);
  out["settings"] = FleetList(answer.settings, FleetSettingsJson);
  out["tried"] = TriedJson(answer.tried);
  out["broken"] = MembersJson(answer.broken);
  out["ranks"] = FleetList(answer.members, MemberJson);
  out["heat"] = HeatJson(answer);
  out["notes"] = answer.notes;
  return out.ToText();
}

}  // namespace ashlar::report
