#include "commands/fit/fit.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "allocator/base/units.h"
#include "commands/shared/fields.h"
#include "commands/shared/layout.h"

namespace ashlar::answers {

const FitChange& FitAnswer::ChangeNamed(const std::string& name) const {
  return *std::find_if(changes.begin(), changes.end(), [&](const FitChange& of) { return of.name == name; });
}

bool FitAnswer::IsAllowed(const FitChange& change) const {
  return change.alters.empty() || std::find(allowed.begin(), allowed.end(), change.alters) != allowed.end();
}

}  // namespace ashlar::answers

namespace ashlar::report {
namespace {

using answers::FitAnswer;
using answers::FitChange;
using answers::FitRow;
using answers::FitValues;
using answers::FitVerdict;

constexpr std::size_t kIndent = 15;
constexpr std::size_t kReasonWidth = 100;
constexpr std::size_t kMostSets = 8;  // in the text; --json has all
constexpr std::size_t kMostNames = 4;

std::string NameOf(const FitRow& row) { return row.changes.empty() ? "as it is" : absl::StrJoin(row.changes, ", "); }

std::string VerdictText(const FitRow& row) {
  switch (row.verdict) {
    case FitVerdict::kFits:
      return "fits";
    case FitVerdict::kFails:
      return row.failed_step.has_value() ? absl::StrCat("fails at step ", *row.failed_step) : "fails";
    case FitVerdict::kNotKnown:
      break;
  }
  return "not known";
}

// Signed: a change may take more.
std::string SavedText(const FitAnswer& a, const FitRow& row) {
  if (row.changes.empty() || !row.peak_reserved_bytes.has_value() || !a.base.peak_reserved_bytes.has_value()) return "";
  const double before = static_cast<double>(*a.base.peak_reserved_bytes);
  const double now = static_cast<double>(*row.peak_reserved_bytes);
  return before == 0 ? "" : absl::StrCat(std::llround(100 * (before - now) / before), " %");
}

std::string CostsText(const FitAnswer& a, const FitRow& row) {
  std::vector<std::string> costs;
  for (const std::string& name : row.changes) {
    const FitChange& change = a.ChangeNamed(name);
    if (change.costs != "none") costs.push_back(change.costs);
    if (!change.alters.empty()) costs.push_back(absl::StrCat("alters results (--allow ", change.alters, ")"));
  }
  return costs.empty() ? "none" : absl::StrJoin(costs, "; ");
}

std::string PlaceText(const FitAnswer& a, const FitRow& row) {
  return row.changes.size() == 1 ? a.ChangeNamed(row.changes.front()).where : "";
}

std::string OrDash(const std::string& text) { return text.empty() ? "-" : text; }

std::string PeakText(const FitRow& row) {
  return row.peak_reserved_bytes.has_value() ? FormatBytes(*row.peak_reserved_bytes) : "-";
}

std::string CardText(const FitAnswer& a) { return absl::StrCat(a.card, " of ", FormatBytes(a.total_bytes)); }

std::string SpareText(const FitAnswer& a, const FitRow& row) {
  if (!row.device_bytes.has_value() || *row.device_bytes > a.total_bytes) return "";
  return absl::StrCat(", ", FormatBytes(a.total_bytes - *row.device_bytes), " to spare");
}

const FitRow* RowOfValue(const FitValues& of, std::optional<std::uint64_t> value) {
  for (const FitValues::Value& one : of.values) {
    if (one.value == value) return &one.row;
  }
  return nullptr;
}

std::string ValuesHeadline(const FitAnswer& a) {
  const FitValues& of = *a.varied;
  if (!of.largest.has_value()) return absl::StrCat("no ", of.name, " that was tried fits on ", CardText(a));
  const FitRow& row = *RowOfValue(of, of.largest);
  const FitRow* next = RowOfValue(of, of.next);
  return absl::StrCat(of.name, " ", *of.largest, " is the largest that fits on ", CardText(a), ": peak reserved ",
                      PeakText(row), SpareText(a, row), "; ",
                      next == nullptr
                          ? "no larger one was run"
                          : absl::StrCat(*of.next, " ", next->why_not.empty() ? VerdictText(*next) : "tells nothing"));
}

std::string Headline(const FitAnswer& a) {
  if (a.varied.has_value()) return ValuesHeadline(a);
  const std::string on = absl::StrCat(" on ", CardText(a));
  if (a.base.verdict == FitVerdict::kFits) {
    return absl::StrCat("fits", on, " as it is: peak reserved ", PeakText(a.base), SpareText(a, a.base));
  }
  const std::string fails = absl::StrCat(VerdictText(a.base), on, " as it is, which takes ", PeakText(a.base));
  if (a.set.has_value()) {
    return absl::StrCat(fails, "; fits with ", NameOf(*a.set), ": peak reserved ", PeakText(*a.set),
                        SpareText(a, *a.set));
  }
  return absl::StrCat(fails, "; no set that was tried fits");
}

// What was not tried, and what --allow would add.
std::vector<std::string> Remarks(const FitAnswer& a) {
  std::vector<std::string> out;
  if (a.varied.has_value()) {
    if (a.varied->is_over) out.push_back("the time was up before the search was at its end: --budget gives more");
    if (!a.varied->where.empty()) out.push_back(absl::StrCat("the batch is made at ", a.varied->where));
    return out;
  }
  if (a.stop_step.has_value()) {
    out.push_back(absl::StrCat("rows end after step ", *a.stop_step, " of ", FormatCount(a.steps),
                               ": what comes later needed no more in the program as it is"));
  }
  if (a.set.has_value() && a.set->operations > 0 && a.base.operations > 0) {
    out.push_back(absl::StrFormat("a step computes %.3g floating-point operations, where it is %.3g as it is: x %.2f",
                                  static_cast<double>(a.set->operations), static_cast<double>(a.base.operations),
                                  static_cast<double>(a.set->operations) / static_cast<double>(a.base.operations)));
  }
  if (a.untried > 0) {
    out.push_back(
        absl::StrCat(FormatCount(a.untried), " dearer sets were not tried: the time was up; --budget gives more"));
  }
  std::vector<std::string> kinds;
  for (const FitChange& change : a.changes) {
    if (!change.applies || a.IsAllowed(change)) continue;
    if (std::find(kinds.begin(), kinds.end(), change.alters) == kinds.end()) kinds.push_back(change.alters);
  }
  if (!kinds.empty() && a.base.verdict != FitVerdict::kFits) {
    out.push_back(absl::StrCat("what alters results is in no set; --allow ", absl::StrJoin(kinds, ","), " lets it in"));
  }
  if (!a.kept_away.empty()) {
    const std::size_t shown = std::min(kMostNames, a.kept_away.size());
    std::vector<std::string> names(a.kept_away.begin(), a.kept_away.begin() + static_cast<std::ptrdiff_t>(shown));
    for (std::string& name : names) name = Printable(name);
    out.push_back(
        absl::StrCat("not written by the runs that followed: ", absl::StrJoin(names, ", "),
                     a.kept_away.size() > shown ? absl::StrCat(" and ", a.kept_away.size() - shown, " more") : ""));
  }
  return out;
}

std::string WithFlag(const FitAnswer& a) {
  return absl::StrCat("python -m ashlar_gpu.fit --with ", absl::StrJoin(a.set->changes, ","));
}

std::size_t NameWidth(const std::vector<const FitRow*>& rows) {
  std::size_t out = 0;
  for (const FitRow* row : rows) out = std::max(out, NameOf(*row).size());
  return out;
}

void AppendTable(const FitAnswer& a, const std::vector<const FitRow*>& rows, bool has_places, std::string& out) {
  const int width = static_cast<int>(NameWidth(rows));
  std::size_t place = has_places ? 4 : 0;
  for (const FitRow* row : rows) place = std::max(place, has_places ? PlaceText(a, *row).size() : 0);
  absl::StrAppend(&out,
                  absl::StrFormat("  %-*s  %13s  %6s  %-15s", width, "change", "peak reserved", "saved", "verdict"));
  if (has_places) absl::StrAppend(&out, absl::StrFormat("  %-*s", static_cast<int>(place), "line"));
  out += "  costs\n";
  for (const FitRow* row : rows) {
    absl::StrAppend(&out, absl::StrFormat("  %-*s  %13s  %6s  %-15s", width, NameOf(*row), PeakText(*row),
                                          SavedText(a, *row), VerdictText(*row)));
    if (has_places)
      absl::StrAppend(&out, absl::StrFormat("  %-*s", static_cast<int>(place), OrDash(PlaceText(a, *row))));
    absl::StrAppend(
        &out, "  ",
        row->why_not.empty() ? CostsText(a, *row) : ShortenedSentence(Printable(row->why_not), kReasonWidth), "\n");
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
    absl::StrAppend(&out, "  ", change.where, "  ", change.title, "\n");
    for (const std::string& line : change.lines) absl::StrAppend(&out, "      ", line, "\n");
  }
  absl::StrAppend(&out, "  or leave the files as they are: ", WithFlag(a), " SCRIPT ARGS...\n");
}

void AppendValues(const FitAnswer& a, std::string& out) {
  AppendSection("VALUES", "each a run on the card, to its end", out);
  const int width = static_cast<int>(std::max<std::size_t>(a.varied->name.size(), 6));
  absl::StrAppend(&out, absl::StrFormat("  %*s  %13s  %s\n", width, a.varied->name, "peak reserved", "verdict"));
  for (const FitValues::Value& one : a.varied->values) {
    absl::StrAppend(&out,
                    absl::StrFormat("  %*d  %13s  %s", width, one.value, PeakText(one.row), VerdictText(one.row)));
    if (!one.row.why_not.empty())
      absl::StrAppend(&out, ": ", ShortenedSentence(Printable(one.row.why_not), kReasonWidth));
    out += "\n";
  }
}

std::string ValuesMarkdown(const FitAnswer& a) {
  std::string out =
      absl::StrCat("**", Headline(a), "**\n\n| ", a.varied->name, " | peak reserved | verdict |\n|---|---|---|\n");
  for (const FitValues::Value& one : a.varied->values) {
    absl::StrAppend(&out, "| ", one.value, " | ", PeakText(one.row), " | ", VerdictText(one.row), " |\n");
  }
  for (const std::string& remark : Remarks(a)) absl::StrAppend(&out, "\n- ", remark);
  return out;
}

}  // namespace

std::string ToText(const FitAnswer& answer) {
  std::string out = "FIT            ";
  AppendWrapped(Headline(answer), kIndent, out);
  for (const std::string& remark : Remarks(answer)) {
    out += std::string(kIndent, ' ');
    AppendWrapped(remark, kIndent, out);
  }
  if (answer.varied.has_value()) {
    AppendValues(answer, out);
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
  AppendLines(answer, out);
  return out;
}

std::string ToMarkdown(const FitAnswer& answer) {
  if (answer.varied.has_value()) return ValuesMarkdown(answer);
  std::string out =
      absl::StrCat("**", Headline(answer), "**\n\n| change | peak reserved | saved | verdict | line | costs |\n",
                   "|---|---|---|---|---|---|\n");
  std::vector<const FitRow*> rows = TableRows(answer);
  for (const FitRow& set : answer.sets) rows.push_back(&set);
  for (const FitRow* row : rows) {
    absl::StrAppend(&out, "| ", NameOf(*row), " | ", PeakText(*row), " | ", SavedText(answer, *row), " | ",
                    VerdictText(*row), " | ", PlaceText(answer, *row), " | ",
                    row->why_not.empty() ? CostsText(answer, *row) : Printable(row->why_not), " |\n");
  }
  for (const std::string& remark : Remarks(answer)) absl::StrAppend(&out, "\n- ", remark);
  if (!answer.set.has_value()) return absl::StrCat(out, "\n");
  out += "\n\n```text\n";
  for (const std::string& name : answer.set->changes) {
    const FitChange& change = answer.ChangeNamed(name);
    absl::StrAppend(&out, change.where, "  ", change.title, "\n");
    for (const std::string& line : change.lines) absl::StrAppend(&out, "    ", line, "\n");
  }
  return absl::StrCat(out, "```\n");
}

namespace {

// Parts of the answer that say something of the whole as well.
struct ShownFitRow {
  const FitAnswer& answer;
  const FitRow& row;
};
struct ShownFitValue {
  std::uint64_t value;
  ShownFitRow run;
};
struct ShownFitValues {
  const FitAnswer& answer;
  const FitValues& varied;
};
struct ShownFitChange {
  const FitAnswer& answer;
  const FitChange& change;
};

std::vector<ShownFitRow> ShownRows(const FitAnswer& answer, const std::vector<FitRow>& rows) {
  std::vector<ShownFitRow> out;
  for (const FitRow& row : rows) out.push_back({answer, row});
  return out;
}

std::vector<ShownFitValue> ValuesThatWereRun(const ShownFitValues& of) {
  std::vector<ShownFitValue> out;
  for (const FitValues::Value& one : of.varied.values) out.push_back({one.value, {of.answer, one.row}});
  return out;
}

std::vector<ShownFitChange> ShownChanges(const FitAnswer& answer) {
  std::vector<ShownFitChange> out;
  for (const FitChange& change : answer.changes) out.push_back({answer, change});
  return out;
}

std::optional<bool> FitsOnCard(const FitRow& row) {
  if (row.verdict == FitVerdict::kNotKnown) return std::nullopt;
  return row.verdict == FitVerdict::kFits;
}

constexpr char kRunOnCard[] = "run on the card";
constexpr char kRunInRoom[] = "run in ample room";

}  // namespace

template <>
const Fields<FitRow>& FieldsOf<FitRow>() {
  static const auto* fields = new Fields<FitRow>(
      Fields<FitRow>("row")
          .Add("changes", &FitRow::changes, "Names of the changes made; none: the program as it is.")
          .Add("fits", &FitsOnCard, "Whether it fits on the card.")
          .Add("peak_reserved_bytes", &FitRow::peak_reserved_bytes,
               "Peak of PyTorch's allocator in room that it does not fill.")
          .Add("device_bytes", &FitRow::device_bytes,
               "The same with contexts and what else lies outside: what the card must have.")
          .Add("failed_step", &FitRow::failed_step,
               "Step of the optimizer, from 1, in which a request fails on the card.")
          .Add(
              "operations",
              [](const auto& row) { return row.operations > 0 ? std::optional(row.operations) : std::nullopt; },
              "Floating-point operations of a step, of matrix products, convolutions and attention, counted in a run "
              "of its own: of the program as it is and of the set.")
          .AddWord(
              "known_by", [](const auto& row) { return row.ran_on_card ? kRunOnCard : kRunInRoom; },
              {kRunOnCard, kRunInRoom}, "Which run the verdict is of.")
          .AddNonEmpty("why_not", &FitRow::why_not, "Why the run tells nothing."));
  return *fields;
}

template <>
const Fields<ShownFitRow>& FieldsOf<ShownFitRow>() {
  const auto row = [](const auto& of) -> const FitRow& { return of.row; };
  const FieldList::Keys last = {"operations", "known_by", "why_not"};
  static const auto* fields = new Fields<ShownFitRow>(
      Fields<ShownFitRow>("row")
          .AddFrom(FieldsOf<FitRow>().AllBut("row", last), row)
          .Add(
              "costs", [](const auto& of) { return CostsText(of.answer, of.row); }, "What its changes cost, in words.")
          .AddFrom(FieldsOf<FitRow>().Only("row", last), row));
  return *fields;
}

template <>
const Fields<ShownFitValue>& FieldsOf<ShownFitValue>() {
  static const auto* fields = new Fields<ShownFitValue>(
      Fields<ShownFitValue>("value")
          .Add("value", &ShownFitValue::value, "The value.")
          .Add("run", &ShownFitValue::run, "The run with it, on the card and to the program's end."));
  return *fields;
}

template <>
const Fields<FitValues>& FieldsOf<FitValues>() {
  static const auto* fields = new Fields<FitValues>(
      Fields<FitValues>("varied")
          .Add("name", &FitValues::name, "The program's argument, or \"batch\".")
          .Add("largest", &FitValues::largest, "Largest value that fits; null where none does.")
          .Add("next", &FitValues::next,
               "Least value above it that was run, and does not fit; null where all that were asked for fit.")
          .AddNonEmpty("where", &FitValues::where, "Line of the program that makes the batch.")
          .Add("is_over", &FitValues::is_over, "Whether the time was up before the search was at its end."));
  return *fields;
}

template <>
const Fields<ShownFitValues>& FieldsOf<ShownFitValues>() {
  static const auto* fields = new Fields<ShownFitValues>(
      Fields<ShownFitValues>("varied")
          .AddFrom(FieldsOf<FitValues>(), [](const auto& of) -> const FitValues& { return of.varied; })
          .Add("values", &ValuesThatWereRun, "Values that were run, in their order."));
  return *fields;
}

template <>
const Fields<FitChange>& FieldsOf<FitChange>() {
  static const auto* fields = new Fields<FitChange>(
      Fields<FitChange>("change")
          .Add("name", &FitChange::name, "As python -m ashlar_gpu.fit --with takes it.")
          .Add("title", &FitChange::title, "What is changed.")
          .Add("applies", &FitChange::applies, "Whether the program has a place for it.")
          .AddNonEmpty("why_not", &FitChange::why_not, "Why it does not apply.")
          .AddNonEmpty("where", &FitChange::where, "Line of the program, file:line.")
          .Add("lines", &FitChange::lines, "What to write there.")
          .Add("costs", &FitChange::costs, "What it costs, in words; \"none\" where nothing can be felt.")
          .AddNonEmpty("alters", &FitChange::alters,
                       "What --allow must name, as results are others; null where they are the same."));
  return *fields;
}

template <>
const Fields<ShownFitChange>& FieldsOf<ShownFitChange>() {
  static const auto* fields = new Fields<ShownFitChange>(
      Fields<ShownFitChange>("change")
          .AddFrom(FieldsOf<FitChange>(), [](const auto& of) -> const FitChange& { return of.change; })
          .Add(
              "is_allowed", [](const auto& of) { return of.answer.IsAllowed(of.change); },
              "Whether a set may have it."));
  return *fields;
}

template <>
const Fields<FitAnswer>& FieldsOf<FitAnswer>() {
  static const auto* fields = new Fields<FitAnswer>(
      Fields<FitAnswer>("fit")
          .Add("program", &FitAnswer::program, "The command that was run.")
          .Add("card", &FitAnswer::card, "Name of the card; \"a device\" where only its memory was given.")
          .Add("total_bytes", &FitAnswer::total_bytes, "Memory of the card.")
          .Add("steps", &FitAnswer::steps, "Steps of the optimizer in the program as it is.")
          .Add("stop_step", &FitAnswer::stop_step, "Step after which rows end; null where they are whole.")
          .Add(
              "as_it_is", [](const auto& of) { return ShownFitRow{of, of.base}; }, "The program without a change.")
          .Add(
              "set",
              [](const auto& of) {
                return of.set.has_value() ? std::optional(ShownFitRow{of, *of.set}) : std::nullopt;
              },
              "Cheapest set that fits, run on the card to the program's end; null where none was found or needed.")
          .Add(
              "varied",
              [](const auto& of) {
                return of.varied.has_value() ? std::optional(ShownFitValues{of, *of.varied}) : std::nullopt;
              },
              "What --vary or --goal largest-batch found, where no change is made; else null.")
          .Add("changes", &ShownChanges, "All changes that are known, in the order of the table.")
          .Add(
              "rows", [](const auto& of) { return ShownRows(of, of.rows); }, "Each change that applies, alone.")
          .Add(
              "sets", [](const auto& of) { return ShownRows(of, of.sets); },
              "Sets of changes in the order in which they were tried, cheapest first.")
          .Add("runs", &FitAnswer::runs, "Number of times that the program was run.")
          .Add("untried_sets", &FitAnswer::untried, "Number of sets that were left when the time was up.")
          .Add("allowed", &FitAnswer::allowed, "Kinds of altered results that --allow let into a set.")
          .Add("kept_away", &FitAnswer::kept_away,
               "Files that the runs after the first would have written, and did not.")
          .Add("remarks", &Remarks, "What is to be known of the answer, a sentence each."));
  return *fields;
}

std::string ToJson(const FitAnswer& answer) { return FieldsOf<FitAnswer>().ToJson(answer).ToText(); }

std::string FitSchema() {
  return SchemaTextOf<FitAnswer>("fit",
                                 "What to change in a program so that it fits on a card. A row is a run with changes "
                                 "made from outside. Sizes are bytes; null means that it is not known.");
}

}  // namespace ashlar::report
