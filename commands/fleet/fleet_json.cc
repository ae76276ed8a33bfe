// The answer of `ashlar fleet` as JSON.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "commands/fleet/fleet.h"
#include "commands/shared/fields.h"
#include "commands/shared/what_if_fields.h"

namespace ashlar::report {

namespace {

using answers::FleetAnswer;
using answers::FleetMember;

// Parts of the answer that say something of the whole as well.
struct FleetRow {
  const whatif::SweepResult& result;
  const whatif::SweepRow& row;
};
struct FleetRisk {
  const whatif::Risk& risk;
};
struct FleetHeatMap {
  const FleetAnswer& answer;

  bool HasTimes() const { return answer.clock != answers::FleetClock::kEvents; }
};

// Of a file that could not be used: one in which nothing is known.
const answers::RankSummary& SummaryOf(const FleetMember& member) {
  static const answers::RankSummary kNone;
  return member.summary.has_value() ? *member.summary : kNone;
}

std::vector<std::uint64_t> PeaksOf(const FleetRow& of) {
  std::vector<std::uint64_t> out;
  for (const whatif::WhatIfRow& trace : of.row.traces) out.push_back(trace.peak_reserved_bytes);
  return out;
}

std::vector<FleetRisk> RisksOfRow(const FleetRow& of) {
  std::vector<FleetRisk> out;
  for (const whatif::Risk& risk : of.row.risks) out.push_back({risk});
  return out;
}

std::vector<FleetRow> RowsOfTried(const answers::FleetTried& tried) {
  std::vector<FleetRow> out;
  for (const whatif::SweepRow& row : tried.result.rows) out.push_back({tried.result, row});
  return out;
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

std::vector<absl::string_view> ClockNames() {
  using answers::FleetClock;
  return {ClockName(FleetClock::kCommon), ClockName(FleetClock::kOwn), ClockName(FleetClock::kEvents)};
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

}  // namespace

template <>
const Fields<FleetRisk>& FieldsOf<FleetRisk>() {
  static const auto* fields = new Fields<FleetRisk>(
      Fields<FleetRisk>("risk").AddFrom(FieldsOf<whatif::Risk>().AllBut("risk", {"level"}),
                                        [](const auto& of) -> const whatif::Risk& { return of.risk; }));
  return *fields;
}

template <>
const Fields<answers::RankFailure>& FieldsOf<answers::RankFailure>() {
  static const auto* fields = new Fields<answers::RankFailure>(
      Fields<answers::RankFailure>("rank_failure")
          .Add("time_us", &answers::RankFailure::time_us, "By the recorder's clock.")
          .Add("request_bytes", &answers::RankFailure::request_bytes, "What was asked for.")
          .Add("verdict", &answers::RankFailure::verdict, "As explain judges it."));
  return *fields;
}

template <>
const Fields<answers::RankCause>& FieldsOf<answers::RankCause>() {
  static const auto* fields = new Fields<answers::RankCause>(
      Fields<answers::RankCause>("rank_cause")
          .Add("name", &answers::RankCause::name, "Stable key of the cause.")
          .Add("confidence", &answers::RankCause::confidence, "possible, likely or proven.")
          .Add("bytes", &answers::RankCause::bytes, "That it explains.")
          .Add("needs_a_change", &answers::RankCause::is_sickness,
               "False where the program works as it should, and holds the memory.")
          .AddNonEmpty("line", &answers::RankCause::line, "Line of the program."));
  return *fields;
}

template <>
const Fields<answers::RankGrowth>& FieldsOf<answers::RankGrowth>() {
  static const auto* fields = new Fields<answers::RankGrowth>(
      Fields<answers::RankGrowth>("rank_growth")
          .Add("bytes_per_step", &answers::RankGrowth::bytes_per_step, "That stay behind.")
          .Add("bytes", &answers::RankGrowth::bytes, "Kept so far.")
          .AddNonEmpty("line", &answers::RankGrowth::line, "Line of the program."));
  return *fields;
}

template <>
const Fields<FleetMember>& FieldsOf<FleetMember>() {
  static const auto* fields = new Fields<FleetMember>(
      Fields<FleetMember>("rank")
          .Add("rank", &FleetMember::rank, "Its number.")
          .Add("name", &FleetMember::name, "Its name in sentences.")
          .Add("file", &FleetMember::path, "As it was given or found.")
          .Add("file_bytes", &FleetMember::file_bytes, "Its length.")
          .AddNonEmpty("error", &FleetMember::error, "Why it could not be used; null where it was.")
          .Add(
              "source", [](const auto& of) { return NonEmpty(SummaryOf(of).source); }, "What was read.")
          .Add(
              "headline", [](const auto& of) { return NonEmpty(SummaryOf(of).headline); }, "What happened.")
          .Add(
              "device", [](const auto& of) { return SummaryOf(of).device; }, "Of the trace.")
          .AtLeast(0)
          .Add(
              "events",
              [](const auto& of) { return of.summary.has_value() ? std::optional(of.summary->events) : std::nullopt; },
              "In the trace.")
          .Add(
              "steps",
              [](const auto& of) { return of.summary.has_value() ? std::optional(of.summary->steps) : std::nullopt; },
              "Whole steps found; 0: none.")
          .Add(
              "failure", [](const auto& of) { return SummaryOf(of).failure; },
              "The last request that found no memory; null: none.")
          .Add(
              "peak_allocated_bytes", [](const auto& of) { return SummaryOf(of).peak_allocated_bytes; },
              "In the trace.")
          .Add(
              "peak_reserved_bytes", [](const auto& of) { return SummaryOf(of).peak_reserved_bytes; }, "In the trace.")
          .Add(
              "stranded_bytes", [](const auto& of) { return SummaryOf(of).stranded_bytes; },
              "At the failure, else at the peak of allocated memory.")
          .Add(
              "total_bytes", [](const auto& of) { return SummaryOf(of).total_bytes; }, "Of the device.")
          .Add(
              "compat", [](const auto& of) { return NonEmpty(SummaryOf(of).compat); }, "Whose rules the replay kept.")
          .Add(
              "conf",
              [](const auto& of) {
                return SummaryOf(of).compat.empty() ? std::nullopt : std::optional(SummaryOf(of).conf);
              },
              "Recorded settings.")
          .Add(
              "causes", [](const auto& of) { return SummaryOf(of).causes; },
              "Found ones, the one to mend first at the top.")
          .Add(
              "growth", [](const auto& of) { return SummaryOf(of).growth; },
              "What it keeps from step to step; null: nothing.")
          .Add(
              "addresses_matched", [](const auto& of) { return SummaryOf(of).addresses_matched; },
              "Recorded addresses that the replay gave too.")
          .Add("addresses_total", [](const auto& of) { return SummaryOf(of).addresses_total; }, "Recorded addresses."));
  return *fields;
}

template <>
const Fields<answers::FleetFailure>& FieldsOf<answers::FleetFailure>() {
  static const auto* fields = new Fields<answers::FleetFailure>(
      Fields<answers::FleetFailure>("failure")
          .Add("member", &answers::FleetFailure::member, "Position in ranks.")
          .Add("after_us", &answers::FleetFailure::after_us,
               "Microseconds since the first rank began; by their own clocks since the rank itself began; null without "
               "times."));
  return *fields;
}

template <>
const Fields<answers::FleetStage>& FieldsOf<answers::FleetStage>() {
  static const auto* fields = new Fields<answers::FleetStage>(
      Fields<answers::FleetStage>("stage")
          .Add("members", &answers::FleetStage::members, "Positions in ranks.")
          .Add("median_peak_allocated_bytes", &answers::FleetStage::median_allocated_bytes, "Of the stage.")
          .Add("median_peak_reserved_bytes", &answers::FleetStage::median_reserved_bytes, "Of the stage."));
  return *fields;
}

template <>
const Fields<answers::FleetOutlier>& FieldsOf<answers::FleetOutlier>() {
  static const auto* fields = new Fields<answers::FleetOutlier>(
      Fields<answers::FleetOutlier>("outlier")
          .Add("member", &answers::FleetOutlier::member, "Position in ranks.")
          .AddWord(
              "figure", [](const auto& of) { return of.figure; }, {"peak_allocated", "peak_reserved", "stranded"},
              "Which figure.")
          .Add("bytes", &answers::FleetOutlier::bytes, "Of this rank.")
          .Add("median_bytes", &answers::FleetOutlier::median_bytes, "Of the ranks it is compared with.")
          .Add("spread_bytes", &answers::FleetOutlier::spread_bytes,
               "1.4826 times their median distance from the median.")
          .Add("stage", &answers::FleetOutlier::stage, "Position in stages; null: compared with all ranks."));
  return *fields;
}

template <>
const Fields<answers::FleetCause>& FieldsOf<answers::FleetCause>() {
  static const auto* fields = new Fields<answers::FleetCause>(
      Fields<answers::FleetCause>("cause")
          .Add("name", &answers::FleetCause::name, "Stable key of the cause.")
          .Add("sentence", &answers::FleetCause::sentence, "The cause in words.")
          .Add("members", &answers::FleetCause::members, "Ranks that have it.")
          .Add("first_of", &answers::FleetCause::first_of, "Of those, where it is the one to mend first.")
          .Add("failed", &answers::FleetCause::failed, "Of those, where a request failed.")
          .Add("median_bytes", &answers::FleetCause::median_bytes, "That it explains in the ranks that have it.")
          .Add("most_bytes", &answers::FleetCause::most_bytes, "The same in the rank with most.")
          .AddNonEmpty("line", &answers::FleetCause::line, "Line of the program that most of them name.")
          .Add("line_members", &answers::FleetCause::line_members, "Ranks that name it."));
  return *fields;
}

template <>
const Fields<answers::FleetGrowth>& FieldsOf<answers::FleetGrowth>() {
  static const auto* fields = new Fields<answers::FleetGrowth>(
      Fields<answers::FleetGrowth>("growth")
          .Add("members", &answers::FleetGrowth::members, "Positions in ranks.")
          .Add("least_bytes_per_step", &answers::FleetGrowth::least_bytes_per_step, "Of the rank that grows least.")
          .Add("most_bytes_per_step", &answers::FleetGrowth::most_bytes_per_step, "Of the rank that grows most.")
          .AddNonEmpty("line", &answers::FleetGrowth::line, "Line of the program that makes what is kept."));
  return *fields;
}

template <>
const Fields<answers::FleetSettings>& FieldsOf<answers::FleetSettings>() {
  static const auto* fields = new Fields<answers::FleetSettings>(
      Fields<answers::FleetSettings>("settings")
          .Add("conf", &answers::FleetSettings::conf, "As for PYTORCH_CUDA_ALLOC_CONF; empty: the default settings.")
          .Add("compat", &answers::FleetSettings::compat, "Whose rules the replay kept.")
          .Add("total_bytes", &answers::FleetSettings::total_bytes, "Of the device.")
          .Add("members", &answers::FleetSettings::members, "Positions in ranks."));
  return *fields;
}

template <>
const Fields<FleetRow>& FieldsOf<FleetRow>() {
  static const auto* fields = new Fields<FleetRow>(
      Fields<FleetRow>("row")
          .Add(
              "conf",
              [](const auto& of) {
                return of.result.recorded_confs_differ && of.row.is_baseline ? std::nullopt
                                                                             : std::optional(of.row.conf);
              },
              "As for PYTORCH_CUDA_ALLOC_CONF; null: as recorded, where that differs from rank to rank.")
          .Add(
              "is_recorded_setting", [](const auto& of) { return of.row.is_baseline; },
              "True of the row in which each rank has its recorded settings.")
          .Add(
              "is_recommended", [](const auto& of) { return of.row.is_recommended; }, "True of the chosen row.")
          .Add(
              "failing_members", [](const auto& of) { return of.row.score.failing_traces; },
              "Ranks in which a request fails.")
          .Add(
              "ooms", [](const auto& of) { return of.row.score.ooms; }, "Requests that fail, of all ranks.")
          .Add(
              "worst_regret", [](const auto& of) { return of.row.score.regret; },
              "How far the peak is above the lowest of the same rank, in the rank where that is farthest.")
          .Add(
              "driver_calls", [](const auto& of) { return of.row.score.driver_calls; }, "Of all ranks.")
          .Add(
              "estimated_driver_ns", [](const auto& of) { return of.row.score.cost_ns; },
              "Their cost by the cost model.")
          .Add(
              "retries", [](const auto& of) { return of.row.retries; }, "Of all ranks.")
          .AddWord(
              "risk", [](const auto& of) { return whatif::RiskLevelName(of.row.score.risk); }, RiskLevels(),
              "The worst of its risks.")
          .Add("peak_reserved_bytes", &PeaksOf, "Of each rank.")
          .Add("risks", &RisksOfRow, "What speaks against the setting."));
  return *fields;
}

template <>
const Fields<answers::FleetTried>& FieldsOf<answers::FleetTried>() {
  static const auto* fields = new Fields<answers::FleetTried>(
      Fields<answers::FleetTried>("tried")
          .Add("members", &answers::FleetTried::members,
               "Ranks that have something to replay; each row's lists are in this order.")
          .Add(
              "advice", [](const auto& of) { return of.result.advice.sentence; },
              "What the chosen setting would do, or why nothing is to be pasted.")
          .Add(
              "paste", [](const auto& of) { return of.result.advice.paste; }, "Line for the shell.")
          .Add(
              "replays", [](const auto& of) { return of.result.replays; }, "Of all rows together.")
          .Add("rows", &RowsOfTried, "Best first."));
  return *fields;
}

template <>
const Fields<answers::FleetHeat::Row>& FieldsOf<answers::FleetHeat::Row>() {
  static const auto* fields = new Fields<answers::FleetHeat::Row>(
      Fields<answers::FleetHeat::Row>("heat_row")
          .Add("member", &answers::FleetHeat::Row::member, "Position in ranks.")
          .Add(
              "allocated", [](const auto& of) { return SharesText(of.allocated); },
              "The greatest value in each bin, in thousandths of full_bytes, blanks between; - outside the rank's "
              "window.")
          .Add("reserved", [](const auto& of) { return SharesText(of.reserved); }, "The same of reserved memory."));
  return *fields;
}

template <>
const Fields<FleetHeatMap>& FieldsOf<FleetHeatMap>() {
  static const auto* fields = new Fields<FleetHeatMap>(
      Fields<FleetHeatMap>("heat")
          .AddWord(
              "clock", [](const auto& of) { return ClockName(of.answer.clock); }, ClockNames(),
              "common: one time axis; own: each rank counts from its first event; events: each rank's window from its "
              "first event to its last.")
          .Add(
              "begin_us",
              [](const auto& of) { return of.HasTimes() ? std::optional(of.answer.heat.begin_us) : std::nullopt; },
              "Of the axis; null without times.")
          .Add(
              "end_us",
              [](const auto& of) { return of.HasTimes() ? std::optional(of.answer.heat.end_us) : std::nullopt; },
              "Of the axis; null without times.")
          .Add(
              "full_bytes", [](const auto& of) { return of.answer.heat.full_bytes; }, "What 1,000 stands for.")
          .Add(
              "bins", [](const auto&) { return answers::kFleetBins; },
              "Equal parts of the axis, as many as each row has values.")
          .Add("rows", [](const auto& of) { return of.answer.heat.rows; }, "In the order of rank."));
  return *fields;
}

template <>
const Fields<FleetAnswer>& FieldsOf<FleetAnswer>() {
  static const auto* fields = new Fields<FleetAnswer>(
      Fields<FleetAnswer>("fleet")
          .Add("answer", &FleetAnswer::sentences,
               "What is wrong in this fleet and on which ranks, as sentences, the most pressing first.")
          .Add(
              "paste",
              [](const auto& of) { return of.tried.has_value() ? of.tried->result.advice.paste : std::nullopt; },
              "Line for the shell that serves all ranks; null where no setting is better than the recorded ones.")
          .Add("ranks_assumed", &FleetAnswer::ranks_assumed, "How the rank of each file was told.")
          .Add("failures_in_order", &FleetAnswer::failures_in_order,
               "True where the failures are in the order of time; else of rank.")
          .Add("failures", &FleetAnswer::failures, "Ranks in which a request found no memory.")
          .Add("stages", &FleetAnswer::stages,
               "Ranks whose peaks are alike, by their lowest rank; empty where all are of one kind.")
          .Add("outliers", &FleetAnswer::outliers,
               "Figures that lie apart from those of the same stage, the farthest first.")
          .Add("causes", &FleetAnswer::causes, "Each cause with the ranks that have it; those of failed ranks first.")
          .Add("growths", &FleetAnswer::growths, "Ranks that keep memory from step to step, most a step first.")
          .Add("settings", &FleetAnswer::settings,
               "What the ranks ran under, the most ranks first; one item where all are alike.")
          .Add("tried", &FleetAnswer::tried, "One setting in all ranks; null where there is nothing to replay.")
          .Add("broken", &FleetAnswer::broken, "Positions in ranks of the files that could not be used.")
          .Add("ranks", &FleetAnswer::members,
               "The files, in the order of rank; other lists name them by their position here.")
          .Add(
              "heat", [](const auto& of) { return FleetHeatMap{of}; }, "Memory of each rank over time, for a picture.")
          .Add("notes", &FleetAnswer::notes, "What was assumed, guessed, or is not known."));
  return *fields;
}

std::string ToJson(const FleetAnswer& answer) { return FieldsOf<FleetAnswer>().ToJson(answer).ToText(); }

std::string FleetSchema() {
  return SchemaTextOf<FleetAnswer>("fleet",
                                   "The ranks of one job together. Sizes are bytes; null means that it is not known.");
}

}  // namespace ashlar::report
