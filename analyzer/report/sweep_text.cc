#include <algorithm>
#include <cstdint>
#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/base/units.h"
#include "analyzer/report/layout.h"
#include "analyzer/report/printable.h"
#include "analyzer/report/projected.h"
#include "analyzer/report/sweep_report.h"

namespace ashlar::report {
namespace {

using remedies::SweepResult;
using remedies::SweepRow;

constexpr std::size_t kMostNamesOfNote = 3;

// A row of the table: the first of those that come out alike, and how many others do.
struct ShownRow {
  const SweepRow* row = nullptr;
  std::size_t alike = 0;
};

bool StandsAlone(const SweepRow& row) { return row.is_baseline || row.is_default || row.is_recommended; }

bool IsAlike(const SweepRow& a, const SweepRow& b) {
  const auto figures = [](const SweepRow& row) {
    return std::tuple(row.score.ooms, row.score.regret, row.score.cost_ns, row.score.driver_calls, row.retries);
  };
  return figures(a) == figures(b) && a.score.risk == b.score.risk;
}

std::vector<ShownRow> RowsToShow(const answers::SweepAnswer& report) {
  std::vector<ShownRow> groups;
  for (const SweepRow& row : report.result.rows) {
    const bool joins =
        report.result.is_search && !groups.empty() && !StandsAlone(row) && IsAlike(*groups.back().row, row);
    if (joins) {
      ++groups.back().alike;
    } else {
      groups.push_back({&row, 0});
    }
  }
  if (!report.result.is_search) return groups;
  std::vector<ShownRow> out;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const SweepRow& row = *groups[i].row;
    if (i < report.rows_shown || StandsAlone(row) || row.is_pareto_best) out.push_back(groups[i]);
  }
  return out;
}

std::string ConfText(const answers::SweepAnswer& report, const SweepRow& row) {
  if (row.is_baseline && report.result.recorded_confs_differ) return "as recorded, each its own";
  return row.conf.empty() ? "default" : row.conf;
}

std::string SweepOutcome(const answers::SweepAnswer& report, const SweepRow& row) {
  if (row.score.failing_traces == 0) {
    const remedies::WhatIfRow& first = row.traces.front();
    if (report.inputs.size() == 1 && first.is_cut_off) return "gets past";
    return first.feasible.has_value() ? "fits" : "";
  }
  const std::string ooms = absl::StrCat(FormatCount(row.score.ooms), " OOM");
  if (report.inputs.size() == 1) return ooms;
  return absl::StrCat(ooms, " in ", row.score.failing_traces, " of ", report.inputs.size());
}

int OutcomeWidth(const answers::SweepAnswer& report) {
  std::size_t width = 0;
  for (const SweepRow& row : report.result.rows) width = std::max(width, SweepOutcome(report, row).size());
  return static_cast<int>(width);
}

std::string SweepRemark(const ShownRow& shown) {
  const SweepRow& row = *shown.row;
  std::string out;
  const auto add = [&out](const std::string& text) { absl::StrAppend(&out, out.empty() ? "" : ", ", text); };
  if (row.is_baseline) add("as recorded");
  for (const remedies::Risk& risk : row.risks) {
    if (risk.level >= remedies::RiskLevel::kCaution) add(risk.name);
  }
  if (shown.alike > 0) add(absl::StrCat(shown.alike, " more do the same"));
  return out.empty() ? "" : absl::StrCat("   (", out, ")");
}

std::string Stall(std::uint64_t ns) { return absl::StrFormat("%.1f ms", static_cast<double>(ns) / 1e6); }

void AppendSweepRow(const answers::SweepAnswer& report, const ShownRow& shown, std::string& out) {
  const SweepRow& row = *shown.row;
  const std::string peak = report.inputs.size() == 1 ? FormatBytes(row.traces.front().peak_reserved_bytes)
                                                     : absl::StrFormat("%+.1f %%", row.score.regret * 100);
  out += absl::StrFormat("%s%s %11s  %8s  %10s  %-*s  %s%s\n", row.is_recommended ? ">" : " ",
                         row.is_pareto_best ? "*" : " ", peak, FormatCount(row.score.driver_calls),
                         Stall(row.score.cost_ns), OutcomeWidth(report), SweepOutcome(report, row),
                         ConfText(report, row), SweepRemark(shown));
  if (report.inputs.size() > 1) return;
  if (const std::string next = ProjectedText(row.traces.front()); !next.empty())
    absl::StrAppend(&out, "       ", next, "\n");
}

std::string HowMany(const answers::SweepAnswer& report) {
  const SweepResult& result = report.result;
  const std::size_t traces = report.inputs.size();
  std::string out = absl::StrCat(FormatCount(result.rows.size()), " settings");
  if (traces > 1) absl::StrAppend(&out, " on ", traces, " traces");
  absl::StrAppend(&out, ", ", FormatCount(result.replays), " replays");
  if (!result.is_search) return absl::StrCat(out, ": those that were given");
  if (result.is_complete) return absl::StrCat(out, ": every setting of the space");
  absl::StrAppend(&out, ": of a space of ", FormatCount(result.space_size), " a coarse grid, then around the best");
  if (result.is_stopped) absl::StrAppend(&out, "; stopped by --seconds");
  return out;
}

void AppendTable(const answers::SweepAnswer& report, std::string& out) {
  AppendSection("SETTINGS", "best first; > recommended, * none is better in everything; from an empty allocator", out);
  out += absl::StrFormat("   %11s  %8s  %10s  %-*s  setting\n", report.inputs.size() == 1 ? "peak" : "worst peak",
                         "calls", "stall", OutcomeWidth(report), "");
  std::size_t hidden = report.result.rows.size();
  for (const ShownRow& shown : RowsToShow(report)) {
    AppendSweepRow(report, shown, out);
    hidden -= 1 + shown.alike;
  }
  if (hidden > 0) absl::StrAppend(&out, "   ", FormatCount(hidden), " more in --json\n");
}

// What the table names: risks of the rows that are shown.
void AppendRisks(const answers::SweepAnswer& report, std::string& out) {
  std::vector<const remedies::Risk*> risks;
  for (const ShownRow& shown : RowsToShow(report)) {
    for (const remedies::Risk& risk : shown.row->risks) {
      const bool counts = risk.level >= remedies::RiskLevel::kCaution || shown.row->is_recommended;
      const auto same = [&risk](const remedies::Risk* other) { return other->name == risk.name; };
      if (counts && std::none_of(risks.begin(), risks.end(), same)) risks.push_back(&risk);
    }
  }
  if (risks.empty()) return;
  AppendSection("WHAT SPEAKS AGAINST", "", out);
  for (const remedies::Risk* risk : risks) {
    const bool is_bad = risk->level == remedies::RiskLevel::kNotRecommended;
    out += "  ";
    AppendWrapped(
        absl::StrCat(risk->name, is_bad ? ", not recommended" : "", ": ", risk->sentence, " (", risk->source, ")"), 4,
        out);
  }
}

std::string TraceOutcome(const remedies::WhatIfRow& row) {
  if (row.ooms > 0) return absl::StrCat(FormatCount(row.ooms), " OOM");
  return row.feasible.has_value() ? "fits" : "";
}

// Without the folder, unless two files are called alike: the text has one line for it.
std::string FileName(const answers::SweepAnswer& report, std::size_t trace) {
  const auto base = [](const std::string& name) { return name.substr(name.find_last_of('/') + 1); };
  const std::string& name = report.inputs[trace].name;
  for (std::size_t i = 0; i < report.inputs.size(); ++i) {
    if (i != trace && base(report.inputs[i].name) == base(name)) return Printable(name);
  }
  return Printable(base(name));
}

// The row that was chosen, trace by trace.
void AppendEachTrace(const answers::SweepAnswer& report, std::string& out) {
  if (report.inputs.size() < 2) return;
  const SweepRow& row = report.result.rows[report.result.choice.row];
  const SweepRow& baseline = report.result.rows[report.result.baseline];
  AppendSection("EACH TRACE", absl::StrCat("as recorded -> ", ConfText(report, row)), out);
  for (std::size_t i = 0; i < report.inputs.size(); ++i) {
    std::string line =
        absl::StrFormat("  %-40s peak %11s -> %11s   calls %7s -> %7s   %s", Shortened(FileName(report, i), 40),
                        FormatBytes(baseline.traces[i].peak_reserved_bytes),
                        FormatBytes(row.traces[i].peak_reserved_bytes), FormatCount(baseline.traces[i].driver_calls),
                        FormatCount(row.traces[i].driver_calls), TraceOutcome(row.traces[i]));
    absl::StrAppend(&out, absl::StripTrailingAsciiWhitespace(line), "\n");
  }
}

// "(12)", "(3 to 12)"; nothing where it is once in each.
std::string CountsText(const answers::SweepNote& note) {
  const auto [least, most] = std::minmax_element(note.counts.begin(), note.counts.end());
  if (*most <= 1) return "";
  if (*least == *most) return absl::StrCat(" (", FormatCount(*most), ")");
  return absl::StrCat(" (", FormatCount(*least), " to ", FormatCount(*most), ")");
}

// Whom a note is about, where that is not everybody.
std::string HoldersText(const answers::SweepAnswer& report, const answers::SweepNote& note) {
  if (note.traces.size() == report.inputs.size()) return report.inputs.size() == 1 ? "" : "all: ";
  std::string out;
  for (std::size_t i = 0; i < note.traces.size() && i < kMostNamesOfNote; ++i) {
    absl::StrAppend(&out, i == 0 ? "" : ", ", FileName(report, note.traces[i]));
  }
  if (note.traces.size() > kMostNamesOfNote) {
    absl::StrAppend(&out, " and ", note.traces.size() - kMostNamesOfNote, " more");
  }
  return absl::StrCat(out, ": ");
}

void AppendSweepNotes(const answers::SweepAnswer& report, std::string& out) {
  AppendSection("NOTES", "", out);
  for (std::size_t i = 0; i < report.inputs.size(); ++i) {
    out += "  ";
    AppendWrapped(absl::StrCat(FileName(report, i), ": ", report.inputs[i].source), 4, out);
  }
  for (const answers::SweepNote& note : answers::NotesOf(report)) {
    out += "  - ";
    AppendWrapped(absl::StrCat(HoldersText(report, note), note.message, CountsText(note)), 4, out);
  }
}

}  // namespace

std::string ToText(const answers::SweepAnswer& report) {
  std::string out = absl::StrCat("SWEEP   ", HowMany(report), "\nANSWER  ");
  AppendWrapped(report.result.advice.sentence, 8, out);
  if (report.result.advice.paste.has_value()) {
    absl::StrAppend(&out, "PASTE   ", Printable(*report.result.advice.paste), "\n");
  }
  AppendTable(report, out);
  AppendRisks(report, out);
  AppendEachTrace(report, out);
  AppendSweepNotes(report, out);
  return out;
}

}  // namespace ashlar::report
