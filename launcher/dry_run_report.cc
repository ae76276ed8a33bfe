#include "launcher/dry_run_report.h"

#include <signal.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "commands/explain/explain_report.h"
#include "commands/shared/json_values.h"

namespace ashlar::cli {
namespace {

template <typename Item>
void SortByCount(std::vector<Item>& items) {
  std::stable_sort(items.begin(), items.end(), [](const Item& a, const Item& b) { return a.count > b.count; });
}

// As shells count: a program that a signal ended.
constexpr int kSignalCode = 128;
constexpr int kSignalsEnd = 65;

std::string SignalText(int signal) {
  static constexpr std::pair<int, const char*> kNames[] = {
      {SIGHUP, "SIGHUP"},   {SIGINT, "SIGINT"},   {SIGQUIT, "SIGQUIT"}, {SIGILL, "SIGILL"},   {SIGABRT, "SIGABRT"},
      {SIGBUS, "SIGBUS"},   {SIGFPE, "SIGFPE"},   {SIGKILL, "SIGKILL"}, {SIGSEGV, "SIGSEGV"}, {SIGPIPE, "SIGPIPE"},
      {SIGALRM, "SIGALRM"}, {SIGTERM, "SIGTERM"}, {SIGXCPU, "SIGXCPU"}, {SIGXFSZ, "SIGXFSZ"}, {SIGSYS, "SIGSYS"}};
  for (const auto& [number, name] : kNames) {
    if (number == signal) return absl::StrCat("signal ", signal, " (", name, ")");
  }
  return absl::StrCat("signal ", signal);
}

// The first line of the first exception, and whose it was where there are several.
std::string ExceptionOf(const RunReport& report) {
  for (const ProcessRun& run : report.results.runs) {
    if (!run.torch.has_value() || run.torch->exception.empty()) continue;
    const std::string line = run.torch->exception.substr(0, run.torch->exception.find('\n'));
    return report.results.runs.size() > 1 ? absl::StrCat(line, " (", run.Name(), ")") : line;
  }
  return "";
}

std::string DiedOf(const RunReport& report) {
  std::vector<std::string> names;
  for (const ProcessRun& run : report.results.runs) {
    if (run.DiedEarly()) names.push_back(run.Name());
  }
  if (names.empty()) return "";
  return absl::StrCat(names.front(), names.size() > 1 ? absl::StrCat(" and ", names.size() - 1, " more") : "",
                      ", killed or aborted");
}

// Memory that waits for work of other streams is free as soon as its events are found done.
std::string TimeAssumed(const RunReport& report) {
  std::uint64_t found_done = 0;
  for (const ProcessRun& run : report.results.runs) found_done += run.books.has_value() ? run.books->found_done : 0;
  if (found_done == 0) return report.machine.lag;
  return absl::StrCat(
      report.machine.lag, " (event queries told so: ", FormatCount(found_done),
      "); on a GPU it may last, and memory that waits for it stays taken: --lag until-waited shows the most");
}

}  // namespace

bool UsedADevice(const RunReport& report) {
  const std::vector<ProcessRun>& runs = report.results.runs;
  return std::any_of(runs.begin(), runs.end(), [](const ProcessRun& run) { return run.UsedADevice(); });
}

std::optional<Ended> EndedEarly(const RunReport& report) {
  const std::string died = DiedOf(report);
  const int signal = report.exit_code - kSignalCode;
  if (signal > 0 && signal < kSignalsEnd) return Ended{EndedBy::kSignal, SignalText(signal)};
  if (report.exit_code == 0) return died.empty() ? std::nullopt : std::optional(Ended{EndedBy::kProcess, died});
  if (const std::string text = ExceptionOf(report); !text.empty()) return Ended{EndedBy::kException, text};
  return Ended{EndedBy::kExitCode,
               absl::StrCat("exit code ", report.exit_code, died.empty() ? "" : absl::StrCat(" after ", died))};
}

FitState FitOf(const RunReport& report) {
  const std::vector<ProcessRun>& runs = report.results.runs;
  if (std::any_of(runs.begin(), runs.end(), [](const ProcessRun& run) { return run.OutOfMemory() > 0; })) {
    return FitState::kDoesNot;
  }
  return !UsedADevice(report) || EndedEarly(report).has_value() ? FitState::kUnknown : FitState::kFits;
}

std::uint64_t PeakBytes(const RunReport& report) {
  std::uint64_t out = report.results.peak_bytes;
  for (const ProcessRun& run : report.results.runs) out = std::max(out, run.PeakBytes());
  return out;
}

std::vector<MadeUpValue> MadeUpValues(const RunReport& report) {
  std::map<std::string, MadeUpValue> by_line;
  for (const ProcessRun& run : report.results.runs) {
    for (const MadeUpValue& value : run.books.has_value() ? run.books->made_up : std::vector<MadeUpValue>()) {
      MadeUpValue& sum = by_line[value.line];
      sum.line = value.line;
      sum.count += value.count;
      sum.bytes += value.bytes;
    }
  }
  std::vector<MadeUpValue> out;
  for (auto& [line, value] : by_line) out.push_back(std::move(value));
  SortByCount(out);
  return out;
}

std::uint64_t MadeUpTotal(const RunReport& report) {
  std::uint64_t out = 0;
  for (const ProcessRun& run : report.results.runs) out += run.books.has_value() ? run.books->made_up_total : 0;
  return out;
}

std::vector<RefusedCall> RefusedCalls(const RunReport& report) {
  std::map<std::string, std::uint64_t> by_name;
  for (const ProcessRun& run : report.results.runs) {
    if (!run.books.has_value()) continue;
    for (const RefusedCall& call : run.books->refused) by_name[call.name] += call.count;
  }
  std::vector<RefusedCall> out;
  for (const auto& [name, count] : by_name) out.push_back({name, count});
  SortByCount(out);
  return out;
}

std::vector<Assumption> Assumptions(const RunReport& report) {
  const HollowMachine& machine = report.machine;
  std::vector<Assumption> out;
  if (machine.has_limit) {
    out.push_back({"memory of a device", machine.total.bytes, machine.total.mark, machine.total.source});
  }
  out.push_back({"CUDA context of each process", machine.context.bytes, machine.context.mark, machine.context.source});
  out.push_back(
      {"workspaces that cuDNN and other libraries ask for", 0, "assumed", "they depend on the kernels chosen"});
  out.push_back({"NCCL's own buffers", 0, "assumed", "they depend on its version, the links and the ranks"});
  out.push_back({"time", std::nullopt, "assumed", TimeAssumed(report)});
  return out;
}

namespace {

using report::Json;
using report::OrNull;
using report::TextOrNull;

Json MachineJson(const HollowMachine& machine) {
  const auto value = [](const MachineValue& of) {
    return Json{{"bytes", of.bytes}, {"mark", of.mark}, {"source", of.source}};
  };
  return {{"card", TextOrNull(machine.card)},
          {"devices", machine.device_count},
          {"has_limit", machine.has_limit},
          {"total", value(machine.total)},
          {"context", value(machine.context)}};
}

Json AccountingJson(const ProcessAccounting& books) {
  Json devices = Json::Array();
  for (const AccountedDevice& device : books.devices) {
    Json libraries = Json::Array();
    for (const LibraryBytes& library : device.libraries) {
      libraries.Append({{"name", TextOrNull(library.name)}, {"bytes", library.bytes}});
    }
    devices.Append({{"ordinal", device.ordinal},
                    {"total_bytes", device.total_bytes},
                    {"context_bytes", device.context_bytes},
                    {"peak_bytes", device.peak_bytes},
                    {"used_at_end_bytes", device.used_at_end_bytes},
                    {"out_of_memory", device.out_of_memory},
                    {"libraries", libraries}});
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
                {"books", run.books.has_value() ? AccountingJson(*run.books) : Json()},
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

Json FitJson(FitState fit) { return fit == FitState::kUnknown ? Json() : Json(fit == FitState::kFits); }

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
