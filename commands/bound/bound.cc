#include "commands/bound/bound.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/base/units.h"
#include "analyzer/analyses/state/timeline_blocks.h"
#include "commands/shared/fields.h"
#include "commands/shared/layout.h"

namespace ashlar::answers {
namespace {

// Packs and has the offsets checked.
absl::Status PackProblem(std::uint64_t max_steps, const whatif::Progress& progress, BoundAnswer& out) {
  if (progress) progress(absl::StrCat("packing ", FormatCount(out.problem.buffers.size()), " lifetimes"));
  const analyses::Packing packing = analyses::Pack(out.problem.buffers, {.max_steps = max_steps});
  const absl::Status check = analyses::CheckPacking(out.problem.buffers, packing.offsets, packing.height);
  if (!check.ok()) return absl::InternalError(absl::StrCat("the packing does not hold: ", check.message()));
  out.buffers = out.problem.buffers.size();
  out.lower_bound = packing.lower_bound;
  out.packing_height = packing.height;
  out.search_steps = packing.steps;
  out.problem.offsets = packing.offsets;
  return absl::OkStatus();
}

absl::StatusOr<std::uint64_t> CheckGiven(const formats::PackingProblem& problem) {
  std::uint64_t height = 0;
  for (std::size_t i = 0; i < problem.offsets.size(); ++i) {
    if (problem.offsets[i] > UINT64_MAX - problem.buffers[i].size) {
      return absl::InvalidArgumentError(absl::StrCat("the offset of id ", problem.ids[i], " is above 2^64 - size"));
    }
    height = std::max(height, problem.offsets[i] + problem.buffers[i].size);
  }
  const absl::Status check = analyses::CheckPacking(problem.buffers, problem.offsets, height);
  if (check.ok()) return height;
  return absl::InvalidArgumentError(absl::StrCat("the column offset is no packing: ", check.message(),
                                                 " (counted from 0); mend it or take the column out"));
}

void NoteTrace(const TracedRun& run, const analyses::BlockLifetimes& lifetimes, BoundAnswer& out) {
  if (lifetimes.unknown_requests > 0) {
    out.notes.push_back({"requests_unknown", "blocks whose request is not in this trace count with their block size",
                         lifetimes.unknown_requests});
  }
  if (!run.has_events) {
    out.notes.push_back({"no_events", absl::StrCat(kOneState, ": the bound is for that moment"), 1});
  }
}

}  // namespace

absl::StatusOr<BoundAnswer> BoundOfTrace(std::string input, const TracedRun& run, std::uint64_t max_steps,
                                         const whatif::Progress& progress) {
  BoundAnswer out{std::move(input), run.source};
  analyses::BlockLifetimes lifetimes = analyses::LifetimesOf(run.timeline);
  for (std::size_t i = 0; i < lifetimes.in_use.size(); ++i) out.problem.ids.push_back(absl::StrCat(i));
  out.notes = NotesOfSettings(run.options);
  NoteTrace(run, lifetimes, out);
  out.problem.buffers = std::move(lifetimes.in_use);
  if (absl::Status status = PackProblem(max_steps, progress, out); !status.ok()) return status;
  out.lower_bound = lifetimes.live_bytes_peak;
  out.reserved_bytes = run.timeline.reserved_peak().bytes;
  if (!run.has_events || !run.has_allocator) return out;
  whatif::WhatIfSettings settings;
  settings.baseline = run.options;
  absl::StatusOr<std::vector<whatif::WhatIfRow>> rows = whatif::RunWhatIfs(run.requests, settings, progress);
  if (!rows.ok()) return rows.status();
  out.what_if = *std::move(rows);
  const std::uint64_t cold = out.what_if.front().peak_reserved_bytes;
  if (cold != *out.reserved_bytes) {
    out.notes.push_back({"cold_replay_differs",
                         absl::StrCat("replayed from an empty allocator, in memory that does not run out, the recorded "
                                      "settings reserve ",
                                      FormatBytes(cold)),
                         1});
  }
  return out;
}

absl::StatusOr<BoundAnswer> BoundOfProblem(std::string input, formats::PackingProblem problem, std::uint64_t max_steps,
                                           const whatif::Progress& progress) {
  BoundAnswer out{std::move(input), absl::StrCat("packing problem, ", FormatCount(problem.buffers.size()), " buffers")};
  out.is_bytes = false;
  if (!problem.offsets.empty()) {
    const absl::StatusOr<std::uint64_t> given = CheckGiven(problem);
    if (!given.ok()) return given.status();
    out.given_height = *given;
  }
  out.problem = std::move(problem);
  if (absl::Status status = PackProblem(max_steps, progress, out); !status.ok()) return status;
  return out;
}

std::optional<double> GapClosed(const BoundAnswer& answer, const whatif::WhatIfRow& row) {
  if (answer.what_if.empty()) return std::nullopt;
  const std::uint64_t baseline = answer.what_if.front().peak_reserved_bytes;
  if (baseline <= answer.lower_bound) return std::nullopt;
  return (static_cast<double>(baseline) - static_cast<double>(row.peak_reserved_bytes)) /
         static_cast<double>(baseline - answer.lower_bound);
}

}  // namespace ashlar::answers

namespace ashlar::report {
namespace {

constexpr double kWorthNaming = 0.005;  // of the gap

std::optional<double> Above(std::uint64_t height, std::uint64_t bound) {
  if (bound == 0) return std::nullopt;
  return (static_cast<double>(height) - static_cast<double>(bound)) / static_cast<double>(bound);
}

std::string AboveText(std::uint64_t height, std::uint64_t bound) {
  const std::optional<double> share = Above(height, bound);
  return share.has_value() ? absl::StrFormat("%.2f %% above the bound", *share * 100) : "nothing was alive";
}

std::string Size(const answers::BoundAnswer& report, std::uint64_t size) {
  return report.is_bytes ? FormatBytes(size) : FormatCount(size);
}

// A narrow terminal has the short remark.
void AppendLine(const answers::BoundAnswer& report, const char* name, std::uint64_t size, const std::string& remark,
                const std::string& short_remark, std::string& out) {
  const std::string figure = absl::StrFormat("  %-17s %14s   ", name, Size(report, size));
  AppendRows({{figure + remark}, {figure + short_remark}}, out);
}

// A row in three forms, from the fullest to the shortest.
RowTexts WhatIfForms(const answers::BoundAnswer& report, const whatif::WhatIfRow& row) {
  constexpr std::size_t kNameWidth = 32, kShortNameWidth = 28;
  const std::string name = row.conf.empty() ? "default" : Printable(row.conf);
  const std::string peak = FormatBytes(row.peak_reserved_bytes);
  const std::string above = AboveText(row.peak_reserved_bytes, report.lower_bound);
  const std::optional<double> closed = answers::GapClosed(report, row);
  std::string closes;
  if (row.is_baseline) {
    closes = "   <- as recorded";
  } else if (closed.has_value() && *closed >= kWorthNaming) {
    closes = absl::StrFormat(", closes %.0f %% of the gap", *closed * 100);
  }
  const std::string short_row = absl::StrFormat("  %-28s %11s  %s", MiddleCut(name, kShortNameWidth), peak,
                                                above.substr(0, above.find(" the bound")));
  return {absl::StrFormat("  %-32s peak %12s   %s%s", Shortened(name, kNameWidth), peak, above, closes),
          absl::StrCat(short_row, row.is_baseline ? ", as recorded" : ""), short_row};
}

void AppendWhatIfs(const answers::BoundAnswer& report, std::string& out) {
  if (report.what_if.empty()) return;
  AppendSection("WHAT COMES CLOSER", "each row replayed from an empty allocator in memory that does not run out", out);
  const whatif::WhatIfRow* best = &report.what_if.front();
  std::vector<RowTexts> forms(3);
  for (const whatif::WhatIfRow& row : report.what_if) {
    if (row.peak_reserved_bytes < best->peak_reserved_bytes) best = &row;
    const RowTexts texts = WhatIfForms(report, row);
    for (std::size_t form = 0; form < forms.size(); ++form) forms[form].push_back(texts[form]);
  }
  AppendRows(forms, out);
  const double closed = answers::GapClosed(report, *best).value_or(0);
  if (closed < kWorthNaming) {
    out += "  none of these settings comes closer\n";
    return;
  }
  out += absl::StrFormat("  %s closes %.0f %% of the gap: %s of %s\n",
                         best->conf.empty() ? "the default" : Shortened(Printable(best->conf), 60), closed * 100,
                         FormatBytes(report.what_if.front().peak_reserved_bytes - best->peak_reserved_bytes),
                         FormatBytes(report.what_if.front().peak_reserved_bytes - report.lower_bound));
}

}  // namespace

std::string ToText(const answers::BoundAnswer& report) {
  std::string out = absl::StrCat("BOUND  ", Shortened(Printable(report.source), 100), "\n");
  AppendLine(report, "lower bound", report.lower_bound, "the most that was needed at one time: nothing can be below",
             "nothing can be below", out);
  AppendLine(report, "offline packing", report.packing_height,
             absl::StrCat(report.IsOptimal() ? "equals the bound: no packing is lower"
                                             : AboveText(report.packing_height, report.lower_bound),
                          "; ", FormatCount(report.buffers), " offsets, checked"),
             report.IsOptimal() ? "equals the bound" : AboveText(report.packing_height, report.lower_bound), out);
  if (report.given_height.has_value()) {
    const std::string above = AboveText(*report.given_height, report.lower_bound);
    AppendLine(report, "offsets given", *report.given_height, absl::StrCat(above, "; checked"), above, out);
  }
  if (report.reserved_bytes.has_value()) {
    const std::string above = AboveText(*report.reserved_bytes, report.lower_bound);
    AppendLine(report, "reserved", *report.reserved_bytes, above, above, out);
  }
  AppendWhatIfs(report, out);
  for (const trace::Note& note : report.notes) {
    absl::StrAppend(&out, "note: ", Printable(note.message),
                    note.count > 1 ? absl::StrCat(" (", FormatCount(note.count), ")") : "", "\n");
  }
  return out;
}

namespace {

// A row as it stands against the bound.
struct BoundedRow {
  const answers::BoundAnswer& answer;
  const whatif::WhatIfRow& row;
};

std::vector<BoundedRow> BoundedRows(const answers::BoundAnswer& answer) {
  std::vector<BoundedRow> out;
  for (const whatif::WhatIfRow& row : answer.what_if) out.push_back({answer, row});
  return out;
}

}  // namespace

template <>
const Fields<BoundedRow>& FieldsOf<BoundedRow>() {
  static const auto* fields = new Fields<BoundedRow>(
      Fields<BoundedRow>("what_if")
          .Add(
              "conf", [](const auto& of) { return of.row.conf; },
              "As for PYTORCH_CUDA_ALLOC_CONF; empty is the default.")
          .Add(
              "is_recorded_setting", [](const auto& of) { return of.row.is_baseline; },
              "The row that the others are compared with.")
          .Add(
              "peak_reserved_bytes", [](const auto& of) { return of.row.peak_reserved_bytes; },
              "From an empty allocator, in memory that does not run out.")
          .Add(
              "above_bound", [](const auto& of) { return Above(of.row.peak_reserved_bytes, of.answer.lower_bound); },
              "(peak - lower bound) / lower bound.")
          .Add(
              "gap_closed", [](const auto& of) { return answers::GapClosed(of.answer, of.row); },
              "Share of what the recorded setting reserves above the bound that this one saves; negative: it reserves "
              "more."));
  return *fields;
}

template <>
const Fields<answers::BoundAnswer>& FieldsOf<answers::BoundAnswer>() {
  using Answer = answers::BoundAnswer;
  static const auto* fields = new Fields<Answer>(
      Fields<Answer>("bound")
          .Add("input", &Answer::input, "The name as given.")
          .Add("source", &Answer::source, "What was read.")
          .AddWord(
              "unit", [](const auto& of) { return of.is_bytes ? "bytes" : "units"; }, {"bytes", "units"},
              "Of the sizes: units in a packing problem, which has none.")
          .Add("buffers", &Answer::buffers, "How many were packed.")
          .Add("lower_bound", &Answer::lower_bound,
               "The greatest sum of what was needed at one time; no allocator can be below.")
          .Add("packing", &Answer::packing_height, "Height of the packing found, whose offsets were checked.")
          .Add(
              "packing_is_optimal", [](const auto& of) { return of.IsOptimal(); },
              "Whether it equals the lower bound; false means that it is not known.")
          .Add(
              "packing_above_bound", [](const auto& of) { return Above(of.packing_height, of.lower_bound); },
              "(packing - lower bound) / lower bound; null where nothing was alive.")
          .Add("search_steps", &Answer::search_steps, "Steps that the search took.")
          .Add("given_packing", &Answer::given_height,
               "Height of the offsets in the input, which were checked; null without.")
          .Add("reserved", &Answer::reserved_bytes, "Peak of reserved memory; null for a packing problem.")
          .Add(
              "reserved_above_bound",
              [](const auto& of) {
                return of.reserved_bytes.has_value() ? Above(*of.reserved_bytes, of.lower_bound) : std::nullopt;
              },
              "(reserved - lower bound) / lower bound; null where either is not known.")
          .Add("what_if", &BoundedRows, "The same requests under each setting, the recorded one first.")
          .Add("notes", &Answer::notes, "What was guessed or is not known."));
  return *fields;
}

std::string ToJson(const answers::BoundAnswer& report) {
  return FieldsOf<answers::BoundAnswer>().ToJson(report).ToText();
}

std::string BoundSchema() {
  return SchemaTextOf<answers::BoundAnswer>(
      "bound", "How little memory the lifetimes of a trace need. Null means that the input does not tell.");
}

}  // namespace ashlar::report
