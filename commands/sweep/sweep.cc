#include "commands/sweep/sweep.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/base/units.h"
#include "analyzer/whatif/what_if_input.h"
#include "commands/explain/explain.h"
#include "commands/shared/fields.h"
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
  std::string out = absl::StrFormat("fidelity %.2f %%: %s of %s blocks where recorded",
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
      "sweep", "Settings side by side, best first. Sizes are bytes; null means that it is not known.");
}

}  // namespace ashlar::report
