// The text and the Markdown of the answer of `ashlar sweep`.
#include <algorithm>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/base/units.h"
#include "commands/explain/explain_report.h"
#include "commands/shared/layout.h"
#include "commands/shared/markdown.h"
#include "commands/sweep/sweep.h"

namespace ashlar::report {
namespace {

using whatif::SweepResult;
using whatif::SweepRow;

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
    const whatif::WhatIfRow& first = row.traces.front();
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
  for (const whatif::Risk& risk : row.risks) {
    if (risk.level >= whatif::RiskLevel::kCaution) add(risk.name);
  }
  if (shown.alike > 0) add(absl::StrCat(shown.alike, " more do the same"));
  return out;
}

std::string Stall(std::uint64_t ns) { return absl::StrFormat("%.1f ms", static_cast<double>(ns) / 1e6); }

std::string SweepPeak(const answers::SweepAnswer& report, const SweepRow& row) {
  return report.inputs.size() == 1 ? FormatBytes(row.traces.front().peak_reserved_bytes)
                                   : absl::StrFormat("%+.1f %%", row.score.regret * 100);
}

// Of a narrow terminal without the stall, then without the calls, then without the remark, then with the setting cut.
std::vector<std::string> SweepRowForms(const answers::SweepAnswer& report, const ShownRow& shown) {
  const SweepRow& row = *shown.row;
  const std::string remark = SweepRemark(shown);
  const std::string peak = absl::StrFormat("%s%s %11s  ", row.is_recommended ? ">" : " ",
                                           row.is_pareto_best ? "*" : " ", SweepPeak(report, row));
  const std::string calls = absl::StrFormat("%8s  ", FormatCount(row.score.driver_calls));
  const std::string stall = absl::StrFormat("%10s  ", Stall(row.score.cost_ns));
  const std::string conf = ConfText(report, row);
  const std::string outcome = absl::StrFormat("%-*s  %s", OutcomeWidth(report), SweepOutcome(report, row), conf);
  const std::string said = absl::StrCat(outcome, remark.empty() ? "" : absl::StrCat("   (", remark, ")"));
  const std::string before = absl::StrFormat("%s%-*s  ", peak, OutcomeWidth(report), SweepOutcome(report, row));
  return {absl::StrCat(peak, calls, stall, said), absl::StrCat(peak, calls, said), absl::StrCat(peak, said),
          absl::StrCat(peak, outcome), absl::StrCat(before, MiddleCut(conf, LabelRoom(before.size(), conf.size())))};
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
  const std::string peak = absl::StrFormat("   %11s  ", report.inputs.size() == 1 ? "peak" : "worst peak");
  const std::string settings = absl::StrFormat("%-*s  setting", OutcomeWidth(report), "");
  std::vector<RowTexts> forms = {{absl::StrFormat("%s%8s  %10s  %s", peak, "calls", "stall", settings)},
                                 {absl::StrFormat("%s%8s  %s", peak, "calls", settings)},
                                 {absl::StrCat(peak, settings)},
                                 {absl::StrCat(peak, settings)},
                                 {absl::StrCat(peak, settings)}};
  std::size_t hidden = report.result.rows.size();
  for (const ShownRow& shown : RowsToShow(report)) {
    const std::vector<std::string> row = SweepRowForms(report, shown);
    const std::string next = report.inputs.size() == 1 ? ProjectedText(shown.row->traces.front()) : "";
    for (std::size_t form = 0; form < forms.size(); ++form) {
      forms[form].push_back(row[form]);
      if (!next.empty()) forms[form].push_back(absl::StrCat("       ", next));
    }
    hidden -= 1 + shown.alike;
  }
  AppendRows(forms, out);
  if (hidden > 0) absl::StrAppend(&out, "   ", FormatCount(hidden), " more in --json\n");
}

// What the table names: risks of the rows that are shown.
void AppendRisks(const answers::SweepAnswer& report, std::string& out) {
  std::vector<const whatif::Risk*> risks;
  for (const ShownRow& shown : RowsToShow(report)) {
    for (const whatif::Risk& risk : shown.row->risks) {
      const bool counts = risk.level >= whatif::RiskLevel::kCaution || shown.row->is_recommended;
      const auto same = [&risk](const whatif::Risk* other) { return other->name == risk.name; };
      if (counts && std::none_of(risks.begin(), risks.end(), same)) risks.push_back(&risk);
    }
  }
  if (risks.empty()) return;
  AppendSection("WHAT SPEAKS AGAINST", "", out);
  for (const whatif::Risk* risk : risks) {
    const bool is_bad = risk->level == whatif::RiskLevel::kNotRecommended;
    out += "  ";
    AppendWrapped(
        absl::StrCat(risk->name, is_bad ? ", not recommended" : "", ": ", risk->sentence, " (", risk->source, ")"), 4,
        out);
  }
}

std::string TraceOutcome(const whatif::WhatIfRow& row) {
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
  std::vector<RowTexts> forms(2);
  for (std::size_t i = 0; i < report.inputs.size(); ++i) {
    const std::string name = FileName(report, i);
    const std::string peaks = absl::StrFormat("%11s -> %11s", FormatBytes(baseline.traces[i].peak_reserved_bytes),
                                              FormatBytes(row.traces[i].peak_reserved_bytes));
    const std::string outcome = TraceOutcome(row.traces[i]);
    const std::string calls = absl::StrFormat("calls %7s -> %7s", FormatCount(baseline.traces[i].driver_calls),
                                              FormatCount(row.traces[i].driver_calls));
    forms[0].push_back(absl::StrFormat("  %-40s peak %s   %s   %s", Shortened(name, 40), peaks, calls, outcome));
    forms[1].push_back(absl::StrFormat("  %-20s  %s   %s", MiddleCut(name, 20), peaks, outcome));
  }
  AppendRows(forms, out);
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

std::string ToMarkdown(const answers::SweepAnswer& report) {
  std::string out = absl::StrCat("### ", MarkdownText(report.result.advice.sentence), "\n");
  if (report.result.advice.paste.has_value()) {
    absl::StrAppend(&out, "\n```\n", Printable(*report.result.advice.paste), "\n```\n");
  }
  std::vector<MarkdownCells> rows;
  for (const ShownRow& shown : RowsToShow(report)) {
    const SweepRow& row = *shown.row;
    const std::string conf = MarkdownText(ConfText(report, row));
    const std::string next = report.inputs.size() == 1 ? ProjectedText(row.traces.front()) : "";
    rows.push_back({row.is_recommended ? absl::StrCat("**", conf, "**") : conf, SweepPeak(report, row),
                    FormatCount(row.score.driver_calls), next.empty() ? SweepOutcome(report, row) : next,
                    MarkdownText(SweepRemark(shown))});
  }
  AppendMarkdownTable("Settings", absl::StrCat(", best first: ", MarkdownText(HowMany(report))),
                      {"settings", report.inputs.size() == 1 ? "peak" : "worst peak", "driver calls", "", ""},
                      {"---", "---:", "---:", "---", "---"}, rows, out);
  return out;
}

}  // namespace ashlar::report
