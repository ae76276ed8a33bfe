#include "commands/fit/fit.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "allocator/base/units.h"
#include "commands/fit/fit_words.h"
#include "commands/shared/layout.h"

namespace ashlar::answers {

const FitChange& FitAnswer::ChangeNamed(const std::string& name) const {
  return *std::find_if(changes.begin(), changes.end(), [&](const FitChange& of) { return of.name == name; });
}

bool FitAnswer::IsAllowed(const FitChange& change) const {
  return change.alters.empty() || std::find(allowed.begin(), allowed.end(), change.alters) != allowed.end();
}

double FitAnswer::PriceOf(const FitChange& change) const {
  const auto row = std::find_if(rows.begin(), rows.end(),
                                [&](const FitRow& of) { return of.changes == std::vector<std::string>{change.name}; });
  if (row == rows.end() || !row->work.has_value() || !base.work.has_value()) return change.price;
  if (row->work->bus_bytes > base.work->bus_bytes) return change.price;
  const auto took = [&](const FitWork& work) {
    return speed.has_value() ? RooflineSeconds(work, *speed) : static_cast<double>(work.operations);
  };
  const double before = took(*base.work);
  return before == 0 ? change.price : std::max(0.0, 100 * (took(*row->work) / before - 1));
}

std::uint64_t FitAnswer::LeastBytes(const std::vector<std::string>& names) const {
  std::uint64_t out = outside_bytes;
  for (const FitHeld& one : held) {
    const bool is_less = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      const std::vector<std::string>& lessens = ChangeNamed(name).lessens;
      return std::find(lessens.begin(), lessens.end(), one.what) != lessens.end();
    });
    if (!is_less) out += one.bytes;
  }
  return out;
}

double RooflineSeconds(const FitWork& work, const FitSpeed& speed) {
  const auto seconds = [](std::uint64_t amount, std::uint64_t a_second) {
    return a_second == 0 ? 0 : static_cast<double>(amount) / static_cast<double>(a_second);
  };
  const double computes = seconds(work.operations - work.narrow_operations, speed.operations) +
                          seconds(work.narrow_operations, speed.narrow_operations);
  return std::max(computes, seconds(work.memory_bytes, speed.memory_bytes));
}

}  // namespace ashlar::answers

namespace ashlar::report {
namespace {

using answers::FitAnswer;
using answers::FitCard;
using answers::FitChange;
using answers::FitEstimate;
using answers::FitRow;
using answers::FitSetting;
using answers::FitValues;
using answers::FitVerdict;

constexpr std::size_t kIndent = 15;
constexpr std::size_t kReasonWidth = 100;
constexpr std::size_t kMostSets = 8;  // in the text; --json has all

std::string OrDash(const std::string& text) { return text.empty() ? "-" : text; }

std::string WithFlag(const FitAnswer& a) {
  return absl::StrCat("python -m ashlar_gpu.fit --with ", absl::StrJoin(a.set->changes, ","));
}

bool IsInDiff(const FitRow& set, const std::string& name) {
  return std::find(set.diff.changes.begin(), set.diff.changes.end(), name) != set.diff.changes.end();
}

std::size_t NameWidth(const std::vector<const FitRow*>& rows) {
  std::size_t out = 0;
  for (const FitRow* row : rows) out = std::max(out, FitRowName(*row).size());
  return out;
}

void AppendTable(const FitAnswer& a, const std::vector<const FitRow*>& rows, bool has_places, std::string& out) {
  const int width = static_cast<int>(NameWidth(rows));
  std::size_t place = has_places ? 4 : 0;
  for (const FitRow* row : rows) place = std::max(place, has_places ? FitPlaceText(a, *row).size() : 0);
  const bool has_work = std::any_of(rows.begin(), rows.end(), [](const FitRow* row) { return row->work.has_value(); });
  absl::StrAppend(&out,
                  absl::StrFormat("  %-*s  %13s  %6s  %-15s", width, "change", "peak reserved", "saved", "verdict"));
  if (has_work) absl::StrAppend(&out, absl::StrFormat("  %8s", "computes"));
  if (has_places) absl::StrAppend(&out, absl::StrFormat("  %-*s", static_cast<int>(place), "line"));
  out += "  costs\n";
  for (const FitRow* row : rows) {
    absl::StrAppend(&out, absl::StrFormat("  %-*s  %13s  %6s  %-15s", width, FitRowName(*row), FitPeakText(*row),
                                          FitSavedText(a, *row), FitVerdictText(*row)));
    if (has_work) absl::StrAppend(&out, absl::StrFormat("  %8s", FitWorkText(a, *row)));
    if (has_places)
      absl::StrAppend(&out, absl::StrFormat("  %-*s", static_cast<int>(place), OrDash(FitPlaceText(a, *row))));
    absl::StrAppend(
        &out, "  ",
        row->why_not.empty() ? FitCostsText(a, *row) : ShortenedSentence(Printable(row->why_not), kReasonWidth), "\n");
  }
}

std::vector<const FitRow*> TableRows(const FitAnswer& a) {
  std::vector<const FitRow*> out = {&a.base};
  for (const FitRow& row : a.rows) out.push_back(&row);
  return out;
}

void AppendSets(const FitAnswer& a, std::string& out) {
  if (a.sets.empty()) return;
  AppendSection("SETS", "cheapest first, each a run of its own", out);
  std::vector<const FitRow*> rows;
  const std::size_t begin = a.sets.size() > kMostSets ? a.sets.size() - kMostSets : 0;  // the last one is the answer
  for (std::size_t i = begin; i < a.sets.size(); ++i) rows.push_back(&a.sets[i]);
  if (begin > 0) absl::StrAppend(&out, "  ", begin, " more before these, none of which fits: --json has them\n");
  AppendTable(a, rows, false, out);
}

void AppendLines(const FitAnswer& a, std::string& out) {
  if (!a.set.has_value()) return;
  AppendSection("WRITE", "", out);
  for (const std::string& name : a.set->changes) {
    const FitChange& change = a.ChangeNamed(name);
    if (IsInDiff(*a.set, name)) continue;
    absl::StrAppend(&out, "  ", change.where, "  ", change.title, "\n");
    for (const std::string& line : change.lines) absl::StrAppend(&out, "      ", line, "\n");
  }
  if (!a.set->diff.text.empty()) {
    absl::StrAppend(&out, "  a diff of ", absl::StrJoin(a.set->diff.changes, ", "), ", for patch -p0:\n\n",
                    a.set->diff.text, "\n");
  }
  absl::StrAppend(&out, "  or leave the files as they are: ", WithFlag(a), " SCRIPT ARGS...\n");
}

void AppendSettings(const FitAnswer& a, std::string& out) {
  if (a.settings.empty()) return;
  AppendSection("SETTINGS", "the requests of the whole run, replayed on the card under other settings", out);
  std::size_t width = 6, setting = 12;
  for (const FitSetting& of : a.settings) {
    width = std::max(width, FitNames(of.changes).size());
    setting = std::max(setting, FitSettingText(of).size());
  }
  const auto line = [&](const std::string& name, const std::string& best, const std::string& peak,
                        const std::string& verdict) {
    absl::StrAppend(&out, absl::StrFormat("  %-*s  %-*s  %13s  %s\n", static_cast<int>(width), name,
                                          static_cast<int>(setting), best, peak, verdict));
  };
  line("change", "best setting", "peak reserved", "verdict");
  for (const FitSetting& of : a.settings) {
    const bool is_known = of.why_not.empty();
    line(FitNames(of.changes), FitSettingText(of), is_known ? FormatBytes(of.peak_reserved_bytes) : "-",
         is_known ? (of.fits ? "fits by replay" : "fails by replay")
                  : ShortenedSentence(Printable(of.why_not), kReasonWidth));
  }
}

std::string EstimateText(const FitEstimate& of) {
  return absl::StrCat(FormatBytes(of.bytes), "  ", of.change,
                      of.where.empty() ? "" : absl::StrCat(" (", of.where, ")"));
}

void AppendEstimates(const FitAnswer& a, std::string& out) {
  if (a.estimates.empty()) return;
  AppendSection("ESTIMATED",
                "no run makes these from outside: what they are about, by the trace of the program as it is", out);
  for (const FitEstimate& of : a.estimates) {
    absl::StrAppend(&out, "  ", Printable(EstimateText(of)), "\n");
    for (const std::string& line : of.lines) absl::StrAppend(&out, "      ", line, "\n");
  }
}

void AppendValues(const FitAnswer& a, std::string& out) {
  AppendSection("VALUES", "each a run on the card, to its end", out);
  const int width = static_cast<int>(std::max<std::size_t>(a.varied->name.size(), 6));
  absl::StrAppend(&out, absl::StrFormat("  %*s  %13s  %s\n", width, a.varied->name, "peak reserved", "verdict"));
  for (const FitValues::Value& one : a.varied->values) {
    absl::StrAppend(
        &out, absl::StrFormat("  %*d  %13s  %s", width, one.value, FitPeakText(one.row), FitVerdictText(one.row)));
    if (!one.row.why_not.empty())
      absl::StrAppend(&out, ": ", ShortenedSentence(Printable(one.row.why_not), kReasonWidth));
    out += "\n";
  }
}

std::string CardOf(const FitCard& of) {
  return of.card.empty() ? "none of the table" : absl::StrCat(of.card, " of ", FormatBytes(of.total_bytes));
}

void AppendCards(const FitAnswer& a, std::string& out) {
  AppendSection("CARDS", "the least of the table, by the peak in ample room; proven: run as that card, on it", out);
  std::size_t width = 6, card = 4;
  for (const FitCard& of : *a.cards) {
    width = std::max(width, FitRowName(of.row).size());
    card = std::max(card, CardOf(of).size());
  }
  const auto line = [&](const std::string& name, const std::string& peak, const std::string& least,
                        const std::string& known, const std::string& costs) {
    absl::StrAppend(&out, absl::StrFormat("  %-*s  %13s  %-*s  %-11s  %s\n", static_cast<int>(width), name, peak,
                                          static_cast<int>(card), least, known, costs));
  };
  line("change", "peak reserved", "card", "known by", "costs");
  for (const FitCard& of : *a.cards) {
    line(FitRowName(of.row), FitPeakText(of.row), of.row.why_not.empty() ? CardOf(of) : "-",
         of.is_proven ? "proven" : "peak",
         of.row.why_not.empty() ? FitCostsText(a, of.row) : ShortenedSentence(Printable(of.row.why_not), kReasonWidth));
  }
}

std::string CardsMarkdown(const FitAnswer& a) {
  std::string out = absl::StrCat("**", FitHeadline(a), "**\n\n| change | peak reserved | card | known by | costs |\n",
                                 "|---|---|---|---|---|\n");
  for (const FitCard& of : *a.cards) {
    absl::StrAppend(&out, "| ", FitRowName(of.row), " | ", FitPeakText(of.row), " | ", CardOf(of), " | ",
                    of.is_proven ? "run on it" : "peak", " | ", FitCostsText(a, of.row), " |\n");
  }
  for (const std::string& remark : FitRemarks(a)) absl::StrAppend(&out, "\n- ", remark);
  return out;
}

std::string ValuesMarkdown(const FitAnswer& a) {
  std::string out =
      absl::StrCat("**", FitHeadline(a), "**\n\n| ", a.varied->name, " | peak reserved | verdict |\n|---|---|---|\n");
  for (const FitValues::Value& one : a.varied->values) {
    absl::StrAppend(&out, "| ", one.value, " | ", FitPeakText(one.row), " | ", FitVerdictText(one.row), " |\n");
  }
  for (const std::string& remark : FitRemarks(a)) absl::StrAppend(&out, "\n- ", remark);
  return out;
}

}  // namespace

std::string ToText(const FitAnswer& answer) {
  std::string out = "FIT            ";
  AppendWrapped(FitHeadline(answer), kIndent, out);
  for (const std::string& remark : FitRemarks(answer)) {
    out += std::string(kIndent, ' ');
    AppendWrapped(remark, kIndent, out);
  }
  if (answer.varied.has_value() || answer.cards.has_value()) {
    answer.varied.has_value() ? AppendValues(answer, out) : AppendCards(answer, out);
    return out;
  }
  AppendSection("CHANGES", "each alone, from outside; a row is a run", out);
  AppendTable(answer, TableRows(answer), true, out);
  std::vector<const FitChange*> missing;
  for (const FitChange& change : answer.changes) {
    if (!change.applies) missing.push_back(&change);
  }
  if (!missing.empty()) out += "  no row:\n";
  for (const FitChange* change : missing)
    absl::StrAppend(&out, "    ", change->name, ": ", Printable(change->why_not), "\n");
  AppendSets(answer, out);
  AppendSettings(answer, out);
  AppendEstimates(answer, out);
  AppendLines(answer, out);
  return out;
}

std::string ToMarkdown(const FitAnswer& answer) {
  if (answer.varied.has_value()) return ValuesMarkdown(answer);
  if (answer.cards.has_value()) return CardsMarkdown(answer);
  std::string out =
      absl::StrCat("**", FitHeadline(answer), "**\n\n| change | peak reserved | saved | verdict | line | costs |\n",
                   "|---|---|---|---|---|---|\n");
  std::vector<const FitRow*> rows = TableRows(answer);
  for (const FitRow& set : answer.sets) rows.push_back(&set);
  for (const FitRow* row : rows) {
    absl::StrAppend(&out, "| ", FitRowName(*row), " | ", FitPeakText(*row), " | ", FitSavedText(answer, *row), " | ",
                    FitVerdictText(*row), " | ", FitPlaceText(answer, *row), " | ",
                    row->why_not.empty() ? FitCostsText(answer, *row) : Printable(row->why_not), " |\n");
  }
  for (const std::string& remark : FitRemarks(answer)) absl::StrAppend(&out, "\n- ", remark);
  for (const FitEstimate& of : answer.estimates) absl::StrAppend(&out, "\n- estimated: ", Printable(EstimateText(of)));
  if (!answer.set.has_value()) return absl::StrCat(out, "\n");
  out += "\n\n```text\n";
  for (const std::string& name : answer.set->changes) {
    if (IsInDiff(*answer.set, name)) continue;
    const FitChange& change = answer.ChangeNamed(name);
    absl::StrAppend(&out, change.where, "  ", change.title, "\n");
    for (const std::string& line : change.lines) absl::StrAppend(&out, "    ", line, "\n");
  }
  out += "```\n";
  return answer.set->diff.text.empty() ? out : absl::StrCat(out, "\n```diff\n", answer.set->diff.text, "```\n");
}

}  // namespace ashlar::report
