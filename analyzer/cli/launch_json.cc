#include <string>
#include <vector>

#include "analyzer/cli/launch_report.h"
#include "analyzer/report/json.h"
#include "analyzer/report/json_values.h"

namespace ashlar::cli {
namespace {

using report::Json;
using report::OrNull;
using report::TextOrNull;

Json MachineJson(const Machine& machine) {
  const auto value = [](const MachineValue& of) {
    return Json{{"bytes", of.bytes}, {"mark", of.mark}, {"source", of.source}};
  };
  return {{"card", TextOrNull(machine.card)},
          {"devices", machine.device_count},
          {"has_limit", machine.has_limit},
          {"total", value(machine.total)},
          {"context", value(machine.context)}};
}

Json BooksJson(const ProcessBooks& books) {
  Json devices = Json::Array();
  for (const DeviceBooks& device : books.devices) {
    devices.Append({{"ordinal", device.ordinal},
                    {"total_bytes", device.total_bytes},
                    {"context_bytes", device.context_bytes},
                    {"peak_bytes", device.peak_bytes},
                    {"used_at_end_bytes", device.used_at_end_bytes},
                    {"out_of_memory", device.out_of_memory}});
  }
  return {{"devices", devices},
          {"pinned_peak_bytes", books.pinned_peak_bytes},
          {"launches", books.launches},
          {"found_done", books.found_done}};
}

Json TorchJson(const TorchInfo& torch) {
  Json devices = Json::Array();
  for (const TorchDevice& device : torch.devices) {
    devices.Append({{"index", device.index},
                    {"peak_allocated_bytes", device.peak_allocated_bytes},
                    {"peak_reserved_bytes", device.peak_reserved_bytes},
                    {"ooms", device.num_ooms},
                    {"retries", device.num_alloc_retries}});
  }
  return {{"version", torch.version},
          {"exception", TextOrNull(torch.exception)},
          {"not_kept", TextOrNull(torch.not_kept)},
          {"devices", devices}};
}

Json ProcessesJson(const RunReport& report) {
  Json out = Json::Array();
  for (const ProcessRun& run : report.results.runs) {
    out.Append({{"pid", run.pid},
                {"rank", OrNull(run.rank)},
                {"out_of_memory", run.OutOfMemory()},
                {"died", run.DiedEarly()},
                {"books", run.books.has_value() ? BooksJson(*run.books) : Json()},
                {"torch", run.torch.has_value() ? TorchJson(*run.torch) : Json()}});
  }
  return out;
}

// `fits` is null where there is no verdict.
Json OutcomeJson(const CardOutcome& outcome, bool has_verdict) {
  const bool fits = outcome.headroom_bytes.has_value();
  return {{"conf", outcome.conf},
          {"fits", has_verdict ? Json(fits) : Json()},
          {"headroom_bytes", OrNull(outcome.headroom_bytes)},
          {"retries", outcome.retries},
          {"failed_step", OrNull(outcome.failed_step)},
          {"failed_at", fits ? Json() : Json(outcome.failed_at)}};
}

Json CardRunsJson(const CardRuns& runs) {
  Json out = Json::Array();
  for (const CardRun& run : runs.runs) {
    out.Append({{"card", run.gpu->name},
                {"capability", gpus::CapabilityText(run.gpu->capability())},
                {"why_not", TextOrNull(run.why_not)}});
  }
  return out;
}

Json CardsJson(const CardTable& table, const CardRuns& runs) {
  Json rows = Json::Array();
  for (const CardRow& row : table.rows) {
    const bool has_verdict = row.HasVerdict();
    const auto outcome = [&](const std::optional<CardOutcome>& of) {
      return of.has_value() ? OutcomeJson(*of, has_verdict) : Json();
    };
    rows.Append({{"card", row.gpu->name},
                 {"capability", gpus::CapabilityText(row.gpu->capability())},
                 {"ran_as", row.ran_as.name},
                 {"has_verdict", has_verdict},
                 {"has_kernels", OrNull(row.has_kernels)},
                 {"total_bytes", row.gpu->total_bytes.value},
                 {"allocator_bytes", row.allocator_bytes},
                 {"peak_allocated_bytes", row.peak_allocated_bytes},
                 {"default", OutcomeJson(row.by_default, has_verdict)},
                 {"expandable", outcome(row.expandable)},
                 {"best_found", outcome(row.best)}});
  }
  return {{"is_replayed", table.is_replayed},
          {"outside_bytes", table.outside_bytes},
          {"peak_allocated_bytes", table.peak_allocated_bytes},
          {"replays", table.replays},
          {"runs", CardRunsJson(runs)},
          {"why_no_runs", TextOrNull(runs.why_none)},
          {"kept_away", runs.kept_away},
          {"rows", rows}};
}

Json EndedJson(const RunReport& report) {
  static constexpr const char* kNames[] = {"exit_code", "signal", "exception", "process"};
  const std::optional<Ended> ended = EndedEarly(report);
  if (!ended.has_value()) return Json();
  return {{"by", kNames[static_cast<int>(ended->by)]}, {"what", ended->what}};
}

Json FitJson(Fit fit) { return fit == Fit::kUnknown ? Json() : Json(fit == Fit::kFits); }

Json MadeUpJson(const RunReport& report) {
  Json lines = Json::Array();
  for (const MadeUpValue& value : MadeUpValues(report)) {
    lines.Append({{"line", value.line}, {"count", value.count}, {"bytes", value.bytes}});
  }
  return {{"total", MadeUpTotal(report)}, {"lines", lines}};
}

}  // namespace

std::string ToJson(const RunReport& report) {
  Json out = {{"program", report.program},
              {"exit_code", report.exit_code},
              {"fits", FitJson(FitOf(report))},
              {"ended_early", EndedJson(report)},
              {"peak_bytes", PeakBytes(report)},
              {"machine", MachineJson(report.machine)},
              {"processes", ProcessesJson(report)},
              {"cards", report.cards.has_value() ? CardsJson(*report.cards, report.card_runs) : Json()},
              {"made_up", MadeUpJson(report)}};
  out["assumptions"] = Json::Array();
  for (const Assumption& of : Assumptions(report)) {
    out["assumptions"].Append(
        {{"what", of.what}, {"bytes", OrNull(of.bytes)}, {"mark", of.mark}, {"source", of.source}});
  }
  out["not_supported"] = Json::Array();
  for (const RefusedCall& call : RefusedCalls(report)) {
    out["not_supported"].Append({{"name", call.name}, {"count", call.count}});
  }
  out["explained_pid"] = report.explanation.has_value() ? Json(report.explained->pid) : Json();
  out["explanation"] = report.explanation.has_value() ? report::ExplanationJson(*report.explanation) : Json();
  out["notes"] = report.notes;
  return out.ToText();
}

}  // namespace ashlar::cli
