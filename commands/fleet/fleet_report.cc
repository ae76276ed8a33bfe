#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "allocator/base/units.h"
#include "commands/fleet/fleet.h"
#include "commands/shared/layout.h"

namespace ashlar::report {
namespace {

using answers::FleetAnswer;
using answers::Member;
using answers::Members;

constexpr std::size_t kMostFailures = 12;
constexpr std::size_t kMostOutliers = 12;
constexpr std::size_t kMostFleetCauses = 6;
constexpr std::size_t kMostBroken = 12;
constexpr std::size_t kNameWidth = 12;

std::string Words(const std::string& name) { return absl::StrReplaceAll(name, {{"_", " "}}); }

// "3 more in --json", where some are not shown.
void AppendHidden(std::size_t shown, std::size_t all, std::string& out) {
  if (all > shown) absl::StrAppend(&out, "  ", FormatCount(all - shown), " more in --json\n");
}

void AppendFleetLine(const std::string& line, std::string& out) {
  absl::StrAppend(&out, absl::StripTrailingAsciiWhitespace(line), "\n");
}

std::string FleetRanks(const FleetAnswer& answer, const Members& members) {
  return answers::RanksOf(answer.members, members);
}

std::string NameOfMember(const FleetAnswer& answer, Member member) { return Printable(answer.members[member].name); }

void AppendFailures(const FleetAnswer& answer, std::string& out) {
  if (answer.failures.empty()) return;
  const bool has_times = answer.clock != answers::FleetClock::kEvents;
  AppendSection("FAILED",
                answer.failures_in_order ? "the first one first"
                : has_times              ? "in the order of rank: no common clock"
                                         : "in the order of rank: no times",
                out);
  for (std::size_t i = 0; i < answer.failures.size() && i < kMostFailures; ++i) {
    const answers::FleetFailure& failure = answer.failures[i];
    const answers::RankSummary& summary = *answer.members[failure.member].summary;
    std::string after;
    if (failure.after_us.has_value()) {
      after = absl::StrFormat("after %9.3f s  ", static_cast<double>(*failure.after_us) / 1e6);
    }
    const std::string request = summary.failure->request_bytes.has_value()
                                    ? absl::StrCat(FormatBytes(*summary.failure->request_bytes), " requested")
                                    : "";
    AppendFleetLine(absl::StrFormat("  %-*s  %s%-24s  %s", kNameWidth, NameOfMember(answer, failure.member), after,
                                    request, Words(summary.failure->verdict)),
                    out);
    for (const answers::RankCause& cause : summary.causes) {
      if (!cause.is_sickness) continue;
      out += "      ";
      AppendWrapped(Printable(absl::StrCat(FormatBytes(cause.bytes), " ", cause.confidence, ": ", cause.sentence,
                                           cause.line.empty() ? "" : ", ", cause.line)),
                    8, out);
      break;
    }
  }
  AppendHidden(kMostFailures, answer.failures.size(), out);
}

void AppendStages(const FleetAnswer& answer, std::string& out) {
  if (answer.stages.empty()) return;
  AppendSection("STAGES", "ranks whose peaks are alike", out);
  for (const answers::FleetStage& stage : answer.stages) {
    AppendFleetLine(
        absl::StrFormat("  %10s   peak allocated %11s   reserved %11s   %s",
                        answers::CountedRanks(answer.members, stage.members), FormatBytes(stage.median_allocated_bytes),
                        FormatBytes(stage.median_reserved_bytes), FleetRanks(answer, stage.members)),
        out);
  }
}

void AppendOutliers(const FleetAnswer& answer, std::string& out) {
  if (answer.outliers.empty()) return;
  AppendSection("WHO DIFFERS",
                answer.stages.empty() ? "from the median of all ranks" : "from the median of the same stage", out);
  for (std::size_t i = 0; i < answer.outliers.size() && i < kMostOutliers; ++i) {
    const answers::FleetOutlier& outlier = answer.outliers[i];
    AppendFleetLine(absl::StrFormat("  %-*s  %-14s  %11s   median %11s   %+.0f %%", kNameWidth,
                                    NameOfMember(answer, outlier.member), Words(outlier.figure),
                                    FormatBytes(outlier.bytes), FormatBytes(outlier.median_bytes),
                                    (static_cast<double>(outlier.bytes) /
                                         static_cast<double>(std::max<std::uint64_t>(outlier.median_bytes, 1)) -
                                     1) *
                                        100),
                    out);
  }
  AppendHidden(kMostOutliers, answer.outliers.size(), out);
}

void AppendFleetCauses(const FleetAnswer& answer, std::string& out) {
  if (answer.causes.empty()) return;
  AppendSection("CAUSES", "in how many ranks; in which of those that failed it is the first", out);
  for (std::size_t i = 0; i < answer.causes.size() && i < kMostFleetCauses; ++i) {
    const answers::FleetCause& cause = answer.causes[i];
    out += absl::StrFormat("  %10s   median %11s   ", answers::CountedRanks(answer.members, cause.members),
                           FormatBytes(cause.median_bytes));
    AppendWrapped(Printable(cause.sentence), 6, out);
    std::string where = FleetRanks(answer, cause.members);
    if (!cause.failed.empty()) {
      absl::StrAppend(&where, "; the first in ", FleetRanks(answer, cause.failed), ", which failed");
    }
    if (!cause.line.empty()) {
      absl::StrAppend(&where, "; from ", cause.line);
      if (cause.line_members < cause.members.size()) {
        absl::StrAppend(&where, " in ", FormatCount(cause.line_members), " of the ", FormatCount(cause.members.size()),
                        " files");
      }
    }
    out += "      ";
    AppendWrapped(Printable(where), 6, out);
  }
  AppendHidden(kMostFleetCauses, answer.causes.size(), out);
}

void AppendGrowths(const FleetAnswer& answer, std::string& out) {
  if (answer.growths.empty()) return;
  AppendSection("GROWTH", "what stays behind at each step", out);
  for (const answers::FleetGrowth& growth : answer.growths) {
    std::string line = absl::StrFormat("  %11s", FormatBytes(growth.most_bytes_per_step));
    if (growth.least_bytes_per_step != growth.most_bytes_per_step) absl::StrAppend(&line, " at most");
    absl::StrAppend(&line, "   ", FleetRanks(answer, growth.members));
    if (!growth.line.empty()) absl::StrAppend(&line, "   ", Printable(growth.line));
    AppendFleetLine(line, out);
  }
}

std::string TriedName(const whatif::SweepResult& result, const whatif::SweepRow& row) {
  if (row.is_baseline && result.recorded_confs_differ) return "as recorded, each its own";
  return row.conf.empty() ? "default" : row.conf;
}

std::string TriedOutcome(const whatif::SweepRow& row) {
  if (row.score.failing_traces > 0) return absl::StrCat("fails in ", FormatCount(row.score.failing_traces));
  const bool is_known = std::any_of(row.traces.begin(), row.traces.end(),
                                    [](const whatif::WhatIfRow& trace) { return trace.feasible.has_value(); });
  if (!is_known) return "";
  return row.score.open_traces > 0 ? "gets past" : "fits";
}

void AppendTried(const FleetAnswer& answer, std::string& out) {
  if (!answer.tried.has_value()) return;
  const whatif::SweepResult& result = answer.tried->result;
  AppendSection("ONE SETTING FOR ALL",
                absl::StrCat(FormatCount(result.replays), " replays; peaks against the lowest of each rank"), out);
  for (const whatif::SweepRow& row : result.rows) {
    std::uint64_t most = 0;
    for (const whatif::WhatIfRow& trace : row.traces) most = std::max(most, trace.peak_reserved_bytes);
    AppendFleetLine(
        absl::StrFormat("%s  worst %+7.1f %%   highest %11s   calls %11s   %-12s  %s%s", row.is_recommended ? ">" : " ",
                        row.score.regret * 100, FormatBytes(most), FormatCount(row.score.driver_calls),
                        TriedOutcome(row), TriedName(result, row), row.is_baseline ? "   (as recorded)" : ""),
        out);
  }
}

void AppendFleetSettings(const FleetAnswer& answer, std::string& out) {
  if (answer.settings.size() < 2) return;
  AppendSection("SETTINGS DIFFER", "", out);
  for (const answers::FleetSettings& settings : answer.settings) {
    std::string what = settings.conf.empty() ? "default" : Printable(settings.conf);
    absl::StrAppend(&what, ", ", settings.compat);
    if (settings.total_bytes.has_value()) absl::StrAppend(&what, ", device of ", FormatBytes(*settings.total_bytes));
    AppendFleetLine(absl::StrFormat("  %10s   %s   %s", answers::CountedRanks(answer.members, settings.members), what,
                                    FleetRanks(answer, settings.members)),
                    out);
  }
}

void AppendUnused(const FleetAnswer& answer, std::string& out) {
  if (answer.broken.empty()) return;
  AppendSection("NOT USED", "files that could not be read", out);
  for (std::size_t i = 0; i < answer.broken.size() && i < kMostBroken; ++i) {
    const answers::FleetMember& member = answer.members[answer.broken[i]];
    out += "  ";
    AppendWrapped(Printable(absl::StrCat(member.path, ": ", member.error)), 4, out);
  }
  AppendHidden(kMostBroken, answer.broken.size(), out);
}

void AppendFleetNotes(const FleetAnswer& answer, std::string& out) {
  AppendSection("NOTES", "", out);
  for (const std::string& note : answer.notes) {
    out += "  - ";
    AppendWrapped(Printable(note), 4, out);
  }
}

}  // namespace

std::string ToText(const FleetAnswer& answer) {
  std::uint64_t bytes = 0;
  std::uint64_t events = 0;
  for (const answers::FleetMember& member : answer.members) {
    bytes += member.file_bytes;
    if (member.summary.has_value()) events += member.summary->events;
  }
  std::string out =
      absl::StrCat("FLEET   ", FormatCount(answer.members.size()), answer.members.size() == 1 ? " file, " : " files, ",
                   FormatBytes(bytes), ", ", FormatCount(events), " events\n");
  for (const std::string& sentence : answer.sentences) {
    absl::StrAppend(&out, &sentence == &answer.sentences.front() ? "ANSWER  " : "        ");
    AppendWrapped(Printable(sentence), 10, out);
  }
  if (answer.tried.has_value() && answer.tried->result.advice.paste.has_value()) {
    absl::StrAppend(&out, "PASTE   ", Printable(*answer.tried->result.advice.paste), "\n");
  }
  AppendFailures(answer, out);
  AppendOutliers(answer, out);
  AppendStages(answer, out);
  AppendFleetCauses(answer, out);
  AppendGrowths(answer, out);
  AppendFleetSettings(answer, out);
  AppendTried(answer, out);
  AppendUnused(answer, out);
  AppendFleetNotes(answer, out);
  return out;
}

}  // namespace ashlar::report
