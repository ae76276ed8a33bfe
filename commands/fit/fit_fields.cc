// The fields of the answer: JSON and docs/schemas/fit.schema.json.
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "commands/fit/fit.h"
#include "commands/fit/fit_words.h"
#include "commands/shared/fields.h"

namespace ashlar::report {

using answers::FitAnswer;
using answers::FitCache;
using answers::FitCard;
using answers::FitChange;
using answers::FitDiff;
using answers::FitEstimate;
using answers::FitHeld;
using answers::FitRow;
using answers::FitSetting;
using answers::FitValues;
using answers::FitVerdict;
using answers::FitWork;

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
struct ShownFitCard {
  const FitAnswer& answer;
  const FitCard& of;
};

std::vector<ShownFitCard> ShownCards(const FitAnswer& answer) {
  std::vector<ShownFitCard> out;
  if (!answer.cards.has_value()) return out;
  for (const FitCard& of : *answer.cards) out.push_back({answer, of});
  return out;
}

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

std::optional<double> RooflineOf(const ShownFitRow& of) {
  if (!of.row.work.has_value() || !of.answer.speed.has_value()) return std::nullopt;
  return answers::RooflineSeconds(*of.row.work, *of.answer.speed);
}

constexpr const char* kGoals[] = {"largest", "longest", "fewest cards"};  // as FitValues::Goal
constexpr char kRunOnCard[] = "run on the card";
constexpr char kRunInRoom[] = "run in ample room";

}  // namespace

template <>
const Fields<FitHeld>& FieldsOf<FitHeld>() {
  static const auto* fields = new Fields<FitHeld>(
      Fields<FitHeld>("held")
          .Add("what", &FitHeld::what, "\"parameters\", \"gradients\" or \"states\" of the optimizer.")
          .Add("bytes", &FitHeld::bytes, "On the device that has most of them."));
  return *fields;
}

template <>
const Fields<FitWork>& FieldsOf<FitWork>() {
  static const auto* fields = new Fields<FitWork>(
      Fields<FitWork>("work")
          .Add("operations", &FitWork::operations,
               "Floating-point operations of matrix products, convolutions and attention.")
          .Add("narrow_operations", &FitWork::narrow_operations, "Those of them in 16 bits.")
          .Add("memory_bytes", &FitWork::memory_bytes, "That its kernels read and write of the device's memory.")
          .Add("bus_bytes", &FitWork::bus_bytes, "Between the host and the device."));
  return *fields;
}

template <>
const Fields<FitDiff>& FieldsOf<FitDiff>() {
  static const auto* fields = new Fields<FitDiff>(
      Fields<FitDiff>("diff")
          .Add("text", &FitDiff::text, "For patch -p0, in the folder that the program ran in.")
          .Add("changes", &FitDiff::changes, "Those that it has whole; of the others their lines are known."));
  return *fields;
}

template <>
const Fields<FitSetting>& FieldsOf<FitSetting>() {
  static const auto* fields = new Fields<FitSetting>(
      Fields<FitSetting>("setting")
          .Add("changes", &FitSetting::changes, "Changes of the run whose requests were replayed.")
          .Add("setting", &FitSettingText, "Best setting, \"policy:ashlar\", or \"as it is\".")
          .Add("fits", &FitSetting::fits, "Whether no request fails in the replay on the card.")
          .Add("peak_reserved_bytes", &FitSetting::peak_reserved_bytes, "Of the replay.")
          .AddNonEmpty("why_not", &FitSetting::why_not, "Why the run tells nothing."));
  return *fields;
}

template <>
const Fields<FitEstimate>& FieldsOf<FitEstimate>() {
  static const auto* fields = new Fields<FitEstimate>(
      Fields<FitEstimate>("estimate")
          .Add("change", &FitEstimate::change, "What to do.")
          .AddNonEmpty("where", &FitEstimate::where, "Line of the program that makes most of the memory.")
          .Add("bytes", &FitEstimate::bytes, "What it is about, where the program as it is fails: no run has shown it.")
          .Add("lines", &FitEstimate::lines, "What to write, in words of the example."));
  return *fields;
}

std::optional<FitDiff> DiffOf(const FitRow& row) {
  return row.diff.text.empty() ? std::nullopt : std::optional(row.diff);
}

template <>
const Fields<FitCache>& FieldsOf<FitCache>() {
  static const auto* fields =
      new Fields<FitCache>(Fields<FitCache>("cache")
                               .AddCount("tokens", &FitCache::tokens, "That it has room for.")
                               .AddCount("longest_request", &FitCache::longest_request, "Tokens of a request at most.")
                               .AddCount("most_requests", &FitCache::most_requests, "Requests at once at most."));
  return *fields;
}

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
          .Add("host_bytes", &FitRow::host_bytes, "What its changes keep on the host in the device's stead.")
          .Add("is_over_host", &FitRow::is_over_host, "Whether the host has less than that: it fails by that alone.")
          .Add("diff", &DiffOf,
               "What its changes write into the program's source, of the set; null where their places are not known.")
          .Add("work", &FitRow::work,
               "What a step computes and moves, counted in a run of its own: of the program as it is, of rows that "
               "fit, and of the set.")
          .Add("cache", &FitRow::cache, "Keys and values of an engine of vLLM that ran on the card; null elsewhere.")
          .AddWord(
              "known_by", [](const auto& row) { return row.ran_on_card ? kRunOnCard : kRunInRoom; },
              {kRunOnCard, kRunInRoom}, "Which run the verdict is of.")
          .AddNonEmpty("why_not", &FitRow::why_not, "Why the run tells nothing."));
  return *fields;
}

template <>
const Fields<ShownFitRow>& FieldsOf<ShownFitRow>() {
  const auto row = [](const auto& of) -> const FitRow& { return of.row; };
  const FieldList::Keys last = {"work", "known_by", "why_not"};
  static const auto* fields = new Fields<ShownFitRow>(
      Fields<ShownFitRow>("row")
          .AddFrom(FieldsOf<FitRow>().AllBut("row", last), row)
          .Add(
              "costs", [](const auto& of) { return FitCostsText(of.answer, of.row); },
              "What its changes cost, in words.")
          .Add("roofline_seconds", &RooflineOf,
               "Estimate: the least time of a step by the card's figures; null where they or its work are not known.")
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
          .AddWord(
              "goal", [](const auto& of) { return kGoals[static_cast<std::size_t>(of.goal)]; },
              {std::begin(kGoals), std::end(kGoals)}, "What is looked for.")
          .Add("found", &FitValues::found, "Best value that fits; null where none does.")
          .Add("next", &FitValues::next,
               "Nearest value beyond it that was run, and does not fit; null where all that were asked for fit.")
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
const Fields<ShownFitCard>& FieldsOf<ShownFitCard>() {
  static const auto* fields = new Fields<ShownFitCard>(
      Fields<ShownFitCard>("card")
          .Add(
              "run", [](const auto& shown) { return ShownFitRow{shown.answer, shown.of.row}; },
              "The run in ample room.")
          .AddNonEmpty(
              "card", [](const auto& shown) { return shown.of.card; },
              "Least card of the table that has room; null where none has.")
          .Add(
              "total_bytes", [](const auto& shown) { return shown.of.total_bytes; }, "Memory of that card.")
          .Add(
              "is_proven", [](const auto& shown) { return shown.of.is_proven; },
              "Whether it was run as that card, on it and to its end; else the peak in ample room says so."));
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
          .Add("headline", &FitHeadline, "The answer in a sentence.")
          .Add("card", &FitAnswer::card, "Name of the card; \"a device\" where only its memory was given.")
          .Add("total_bytes", &FitAnswer::total_bytes, "Memory of the card; 0 where one is looked for.")
          .Add("host_memory_bytes", &FitAnswer::host_memory_bytes,
               "What the host has for what changes keep there: --host-memory, or this host's memory.")
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
              "What --vary or --goal largest-batch found, where no set is looked for; else null.")
          .Add("cards", &ShownCards,
               "Of --goal cards: the least card of the program as it is, with each change, and with what helps "
               "together.")
          .Add("with", &FitAnswer::with, "Changes that --with has in each run after the first.")
          .Add("leaves_draws", &FitAnswer::leaves_draws,
               "Whether rows leave out large random fills of host memory: the program as it is asks for the same "
               "memory without them.")
          .AddNonEmpty("workspaces", &FitAnswer::workspaces,
                       "What --workspaces cudnn did in all runs, in a sentence; null without it.")
          .Add("has_worst_first", &FitAnswer::has_worst_first,
               "Whether each run after the first begins with the longest samples in one batch, as lengths vary.")
          .AddNonEmpty("why_no_worst", &FitAnswer::why_no_worst, "Why that could not be made, where lengths vary.")
          .Add("own_order_bytes", &FitAnswer::own_order_bytes,
               "Peak reserved of the program in the order of its own, where runs begin with the longest samples.")
          .Add("changes", &ShownChanges, "All changes that are known, in the order of the table.")
          .Add(
              "rows", [](const auto& of) { return ShownRows(of, of.rows); }, "Each change that applies, alone.")
          .Add(
              "sets", [](const auto& of) { return ShownRows(of, of.sets); },
              "Sets of changes in the order in which they were tried, cheapest first.")
          .Add("settings", &FitAnswer::settings,
               "Whole runs replayed on the card under other settings: of the set, and of what is within a tenth of the "
               "card.")
          .Add("estimates", &FitAnswer::estimates,
               "Changes that no run can make from outside, estimated from the trace of the program as it is.")
          .Add("held", &FitAnswer::held, "What is live in each step of the optimizer in the program as it is.")
          .Add("runs", &FitAnswer::runs, "Number of times that the program was run.")
          .Add("untried_changes", &FitAnswer::untried_changes,
               "Number of changes that have no row, as the time was up.")
          .Add("untried_sets", &FitAnswer::untried, "Number of sets that were left when the time was up.")
          .Add("pruned_sets", &FitAnswer::pruned,
               "Number of sets that were not run, as what they leave as it is takes more than the card has.")
          .Add("allowed", &FitAnswer::allowed, "Kinds of altered results that --allow let into a set.")
          .Add("kept_away", &FitAnswer::kept_away,
               "Files that the runs after the first would have written, and did not.")
          .Add("not_sent", &FitAnswer::not_sent,
               "What the runs after the first would have connected to, and did not: HOST:PORT.")
          .Add("remarks", &FitRemarks, "What is to be known of the answer, a sentence each."));
  return *fields;
}

std::string ToJson(const FitAnswer& answer) { return FieldsOf<FitAnswer>().ToJson(answer).ToText(); }

std::string FitSchema() {
  return SchemaTextOf<FitAnswer>("fit",
                                 "What to change in a program so that it fits on a card. A row is a run with changes "
                                 "made from outside. Sizes are bytes; null means that it is not known.");
}

}  // namespace ashlar::report
