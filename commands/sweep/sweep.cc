#include "commands/sweep/sweep.h"

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/base/units.h"
#include "analyzer/whatif/what_if_input.h"
#include "commands/explain/explain.h"
#include "commands/explain/explain_report.h"
#include "commands/shared/fields.h"
#include "commands/shared/layout.h"
#include "commands/shared/traced_run.h"
#include "commands/shared/what_if_fields.h"

namespace ashlar::answers {
namespace {

bool HasAllocation(const trace::RequestTrace& requests) {
  for (const trace::Op& request : requests.requests) {
    if (request.kind == trace::OpKind::kAlloc && request.bytes > 0) return true;
  }
  return false;
}

absl::StatusOr<whatif::WhatIfInput> FromSnapshot(const trace::Snapshot& snapshot, const ReplaySettings& settings) {
  if (trace::RecordsDeviceCalls(snapshot)) return absl::InvalidArgumentError(kNoSettings);
  const absl::StatusOr<ObservedRun> run = ObserveSnapshot(snapshot, settings);
  if (!run.ok()) return run.status();
  if (run->recorded.warm.fidelity.total == 0) {
    return absl::InvalidArgumentError(
        "the snapshot records no allocations, so there is nothing to replay; record them with "
        "torch.cuda.memory._record_memory_history() before the run");
  }
  whatif::WhatIfInput out = whatif::InputOf(run->recorded, run->timeline, LimitsOf(WithContext(settings, snapshot)));
  out.next = whatif::ProjectionOf(run->recorded.program, run->timeline, snapshot.stacks,
                                  analyses::FindSteps(run->timeline, &snapshot.stacks, snapshot.annotations));
  out.source = run->source;
  out.notes = NotesOfSettings(run->recorded.options);
  if (const auto note = ContextNote(settings, snapshot); note.has_value() && !out.has_recorded_oom) {
    out.notes.push_back(*note);
  }
  out.notes.insert(out.notes.end(), snapshot.notes.begin(), snapshot.notes.end());
  return out;
}

absl::StatusOr<whatif::WhatIfInput> FromRequests(const trace::RequestTrace& requests, const ReplaySettings& settings) {
  if (settings.device.has_value()) {
    return absl::OutOfRangeError("--device needs a snapshot: this input has one device only");
  }
  if (!HasAllocation(requests)) return absl::InvalidArgumentError("the trace has no allocation to replay");
  const absl::StatusOr<policy::Options> baseline = whatif::OverriddenOptions(settings.overrides);
  if (!baseline.ok()) return baseline.status();
  whatif::WhatIfInput out = whatif::InputOf(requests, *baseline, LimitsOf(settings));
  out.notes = requests.notes;
  return out;
}

std::string FidelitySentence(const replay::Fidelity& fidelity) {
  std::string out = absl::StrFormat("baseline fidelity %.2f %%: %s of %s addresses",
                                    100.0 * static_cast<double>(fidelity.matched) / static_cast<double>(fidelity.total),
                                    FormatCount(fidelity.matched), FormatCount(fidelity.total));
  if (!fidelity.IsExact()) {
    absl::StrAppend(&out, "; the replay of the recorded settings is not exact: take what other settings do with care");
  }
  return out;
}

std::vector<trace::Note> NotesOfTrace(const SweepAnswer& answer, std::size_t trace) {
  const whatif::WhatIfInput& input = answer.inputs[trace];
  std::vector<trace::Note> out = {{"replayed_as", input.replayed_as, 1}};
  out.push_back({"fidelity",
                 input.fidelity.has_value() ? FidelitySentence(*input.fidelity)
                                            : "a request trace records no addresses to compare a replay with",
                 1});
  if (!input.settings.capacity_bytes.has_value()) {
    out.push_back({"capacity_unknown",
                   "how much memory the device has is not in this trace; give --capacity 16GiB to see what fits", 1});
  }
  const whatif::SweepRow& baseline = answer.result.rows[answer.result.baseline];
  for (trace::Note& note : whatif::BaselineNotes(input, baseline.traces[trace])) out.push_back(std::move(note));
  out.insert(out.end(), input.notes.begin(), input.notes.end());
  return out;
}

}  // namespace

absl::StatusOr<WhatIfInput> SweepInputOf(const std::string& name, const Input& input, const ReplaySettings& settings) {
  if (input.snapshot() == nullptr && input.requests() == nullptr) {
    return absl::InvalidArgumentError("this input holds no trace");
  }
  absl::StatusOr<whatif::WhatIfInput> out = input.snapshot() != nullptr ? FromSnapshot(*input.snapshot(), settings)
                                                                        : FromRequests(*input.requests(), settings);
  if (out.ok()) out->name = name;
  return out;
}

absl::StatusOr<SweepAnswer> Sweep(std::vector<WhatIfInput> inputs, const SweepOptions& options) {
  absl::StatusOr<whatif::SweepResult> result = whatif::RunSweep(inputs, options);
  if (!result.ok()) return result.status();
  const auto inexact = std::find_if(inputs.begin(), inputs.end(), [](const WhatIfInput& input) {
    return input.fidelity.has_value() && !input.fidelity->IsExact();
  });
  if (inexact != inputs.end()) {
    const std::string where = inputs.size() > 1 && !inexact->name.empty() ? absl::StrCat("in ", inexact->name) : "";
    whatif::WithholdUnproven(where, result->advice);
  }
  return SweepAnswer{std::move(inputs), *std::move(result)};
}

std::vector<SweepNote> NotesOf(const SweepAnswer& answer) {
  std::vector<SweepNote> out;
  for (std::size_t trace = 0; trace < answer.inputs.size(); ++trace) {
    for (const trace::Note& note : NotesOfTrace(answer, trace)) {
      const auto same = std::find_if(out.begin(), out.end(), [&note](const SweepNote& other) {
        return other.name == note.name && other.message == note.message;
      });
      SweepNote& folded = same != out.end() ? *same : out.emplace_back(SweepNote{note.name, note.message, {}, {}});
      folded.traces.push_back(trace);
      folded.counts.push_back(note.count);
    }
  }
  return out;
}

}  // namespace ashlar::answers

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

namespace {

// Parts of the answer that say something of the whole as well.
struct ShownInput {
  const answers::SweepAnswer& answer;
  const whatif::WhatIfInput& input;
  std::size_t trace = 0;
};
struct ShownSetting {
  const answers::SweepAnswer& answer;
  const SweepRow& row;
};
struct BriefFidelity {
  const replay::Fidelity& of;
};
struct TraceFigures {
  const whatif::WhatIfRow& row;
};

std::vector<TraceFigures> FiguresOfTraces(const ShownSetting& of) {
  std::vector<TraceFigures> out;
  for (const whatif::WhatIfRow& row : of.row.traces) out.push_back({row});
  return out;
}

std::optional<BriefFidelity> BriefFidelityOf(const ShownInput& of) {
  if (!of.input.fidelity.has_value()) return std::nullopt;
  return BriefFidelity{*of.input.fidelity};
}

std::vector<ShownInput> ShownInputs(const answers::SweepAnswer& answer) {
  std::vector<ShownInput> out;
  for (std::size_t i = 0; i < answer.inputs.size(); ++i) out.push_back({answer, answer.inputs[i], i});
  return out;
}

std::vector<ShownSetting> ShownSettings(const answers::SweepAnswer& answer) {
  std::vector<ShownSetting> out;
  for (const SweepRow& row : answer.result.rows) out.push_back({answer, row});
  return out;
}

template <typename Count>
std::optional<Count> OfSearch(const SweepResult& result, Count count) {
  return result.is_search ? std::optional(count) : std::nullopt;
}

}  // namespace

template <>
const Fields<BriefFidelity>& FieldsOf<BriefFidelity>() {
  static const auto* fields =
      new Fields<BriefFidelity>(Fields<BriefFidelity>("fidelity")
                                    .AddFrom(FieldsOf<replay::Fidelity>().Only("fidelity", {"matched", "total"}),
                                             [](const auto& brief) -> const replay::Fidelity& { return brief.of; })
                                    .Add(
                                        "is_exact", [](const auto& brief) { return brief.of.IsExact(); },
                                        "All addresses, all segments and the final state are as recorded."));
  return *fields;
}

template <>
const Fields<ShownInput>& FieldsOf<ShownInput>() {
  static const auto* fields = new Fields<ShownInput>(
      Fields<ShownInput>("trace")
          .Add(
              "name", [](const auto& of) { return of.input.name; }, "The file as given; - is standard input.")
          .Add(
              "source", [](const auto& of) { return of.input.source; },
              "What was read: kind, generation, device, number of events.")
          .Add(
              "requests", [](const auto& of) { return of.input.requests.requests.size(); },
              "Number of requests in one replay.")
          .Add(
              "recorded_conf",
              [](const auto& of) { return of.answer.result.rows[of.answer.result.baseline].traces[of.trace].conf; },
              "Settings of the recorded run, as for PYTORCH_CUDA_ALLOC_CONF; empty: the defaults.")
          .Add(
              "compat", [](const auto& of) { return policy::CompatName(of.input.settings.baseline.compat); },
              "Version whose rules were replayed.")
          .Add(
              "capacity_bytes", [](const auto& of) { return of.input.settings.capacity_bytes; },
              "Bytes the allocator could have; null: not known, never runs out.")
          .Add(
              "recorded_peak_reserved_bytes", [](const auto& of) { return of.input.recorded_peak_reserved_bytes; },
              "Greatest sum of segments in the record's own window, bytes; null for a request trace.")
          .Add("fidelity", &BriefFidelityOf,
               "How exactly the recorded settings reproduce the record; null for a request trace."));
  return *fields;
}

template <>
const Fields<TraceFigures>& FieldsOf<TraceFigures>() {
  static const auto* fields = new Fields<TraceFigures>(
      Fields<TraceFigures>("trace_row")
          .AddFrom(FieldsOf<whatif::WhatIfRow>().AllBut("trace_row", {"conf", "is_recorded_setting"}),
                   [](const auto& of) -> const whatif::WhatIfRow& { return of.row; }));
  return *fields;
}

template <>
const Fields<ShownSetting>& FieldsOf<ShownSetting>() {
  static const auto* fields = new Fields<ShownSetting>(
      Fields<ShownSetting>("row")
          .Add(
              "conf",
              [](const auto& of) {
                const bool has_none = of.row.is_baseline && of.answer.result.recorded_confs_differ;
                return has_none ? std::nullopt : std::optional(of.row.conf);
              },
              "As for PYTORCH_CUDA_ALLOC_CONF; empty: the defaults; null: each trace under recorded settings of its "
              "own.")
          .Add(
              "is_recorded_setting", [](const auto& of) { return of.row.is_baseline; },
              "The settings of the recorded run.")
          .Add(
              "is_default", [](const auto& of) { return of.row.is_default; },
              "Nothing but what the recorded settings say besides the keys that are searched.")
          .Add(
              "is_pareto_best", [](const auto& of) { return of.row.is_pareto_best; },
              "No other row is at least as good in failures, peak, estimated stall and risk, and better in one of "
              "them.")
          .Add(
              "is_recommended", [](const auto& of) { return of.row.is_recommended; },
              "The row that the advice is about, or the recorded settings where nothing is to be pasted.")
          .Add(
              "failing_traces", [](const auto& of) { return of.row.score.failing_traces; },
              "Number of traces in which a request failed.")
          .Add(
              "ooms", [](const auto& of) { return of.row.score.ooms; },
              "Number of failed requests, all traces together.")
          .Add(
              "worst_regret", [](const auto& of) { return of.row.score.regret; },
              "Peak of reserved memory over the trace's lowest peak, less 1, a share of 1; of several traces the "
              "greatest.")
          .AtLeast(-1)
          .Add(
              "driver_calls", [](const auto& of) { return of.row.score.driver_calls; },
              "Number of calls that obtain or return memory, all traces together.")
          .Add(
              "estimated_driver_ns", [](const auto& of) { return of.row.score.cost_ns; },
              "Nanoseconds of those calls by the simulated device's cost model, all traces together.")
          .Add(
              "retries", [](const auto& of) { return of.row.retries; },
              "Number of requests for which the cache went back to the device, all traces together.")
          .AddWord(
              "risk", [](const auto& of) { return whatif::RiskLevelName(of.row.score.risk); }, RiskLevels(),
              "The worst level of the risks.")
          .Add(
              "risks", [](const auto& of) { return of.row.risks; }, "What speaks against the setting.")
          .Add("traces", &FiguresOfTraces, "The figures of each trace, in the order of the inputs."));
  return *fields;
}

template <>
const Fields<answers::SweepNote>& FieldsOf<answers::SweepNote>() {
  static const auto* fields = new Fields<answers::SweepNote>(
      Fields<answers::SweepNote>("note")
          .Add("name", &answers::SweepNote::name, "Stable key of the note.")
          .Add("message", &answers::SweepNote::message, "The note in words.")
          .Add("traces", &answers::SweepNote::traces,
               "The traces that it holds for: positions in traces, from 0, ascending.")
          .AtLeast(1)
          .Add("counts", &answers::SweepNote::counts, "How often it occurred in each of them.")
          .AtLeast(1));
  return *fields;
}

template <>
const Fields<answers::SweepAnswer>& FieldsOf<answers::SweepAnswer>() {
  using Answer = answers::SweepAnswer;
  static const auto* fields = new Fields<Answer>(
      Fields<Answer>("sweep")
          .Add(
              "paste", [](const auto& of) { return of.result.advice.paste; },
              "Line for the shell; null where no setting is better than the recorded ones.")
          .Add(
              "advice", [](const auto& of) { return of.result.advice.sentence; },
              "What that line would do, or why nothing is to be pasted.")
          .Add(
              "is_search", [](const auto& of) { return of.result.is_search; },
              "False where only the settings of --confs were replayed.")
          .Add(
              "is_complete", [](const auto& of) { return of.result.is_complete; },
              "True where every setting of the space was replayed.")
          .Add(
              "is_stopped", [](const auto& of) { return of.result.is_stopped; },
              "True where --seconds ended the search.")
          .Add(
              "space_size", [](const auto& of) { return OfSearch(of.result, of.result.space_size); },
              "Number of settings the search could offer; null without a search.")
          .Add(
              "budget_replays", [](const auto& of) { return OfSearch(of.result, of.result.budget_replays); },
              "Number of replays the search could take; null without a search.")
          .Add(
              "replays", [](const auto& of) { return of.result.replays; },
              "Number of replays made, those of the recorded settings among them.")
          .Add("traces", &ShownInputs, "The inputs, in the order given.")
          .Add("rows", &ShownSettings, "The settings replayed, best first.")
          .Add("notes", &answers::NotesOf,
               "How the traces were replayed, and what was guessed, skipped or is not known; what holds for several "
               "of them once."));
  return *fields;
}

std::string ToJson(const answers::SweepAnswer& report) {
  return FieldsOf<answers::SweepAnswer>().ToJson(report).ToText();
}

std::string SweepSchema() {
  return SchemaTextOf<answers::SweepAnswer>(
      "ashlar sweep --json", "Settings side by side, best first. Sizes are bytes; null means that it is not known.");
}

}  // namespace ashlar::report
