#include "launcher/dry_run_report.h"

#include <signal.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"

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

// What the routers of a mixture of experts were given in the place of choices that only kernels would make.
std::string RoutingAssumed(const RunReport& report) {
  std::uint64_t choices = 0;
  for (const ProcessRun& run : report.results.runs) choices += run.torch.has_value() ? run.torch->routing_choices : 0;
  if (choices == 0)
    return absl::StrCat("--routing ", report.routing, ": no router of experts was found in the program");
  const std::string words = report.routing == "balanced" ? "each expert gets as many tokens"
                            : report.routing == "worst"  ? "all tokens go to the same experts"
                                                         : "each token's experts are drawn alike";
  return absl::StrCat("--routing ", report.routing, ": ", words, " (", FormatCount(choices), " choices of routers)");
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

std::vector<GivenValue> GivenValues(const RunReport& report) {
  std::vector<GivenValue> out;
  for (const std::string& flag : report.values) out.push_back({flag});
  for (const ProcessRun& run : report.results.runs) {
    if (!run.torch.has_value()) continue;
    for (std::size_t i = 0; i < std::min(out.size(), run.torch->given_values.size()); ++i) {
      out[i].reads += run.torch->given_values[i].reads;
      if (out[i].why_not.empty()) out[i].why_not = run.torch->given_values[i].why_not;
    }
  }
  return out;
}

std::vector<ReadingLine> ReadingLines(const RunReport& report) {
  std::vector<ReadingLine> out;
  for (const ProcessRun& run : report.results.runs) {
    for (const ReadingLine& line : run.torch.has_value() ? run.torch->reading_lines : std::vector<ReadingLine>()) {
      const auto same = std::find_if(out.begin(), out.end(), [&](const ReadingLine& o) { return o.line == line.line; });
      same == out.end() ? out.push_back(line) : static_cast<void>(same->count += line.count);
    }
  }
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
  if (machine.in_use.bytes > 0 || machine.has_unified_memory) {
    out.push_back({"in use beside the program", machine.in_use.bytes, machine.in_use.mark, machine.in_use.source});
  }
  out.push_back({"time", std::nullopt, "assumed", TimeAssumed(report)});
  if (!report.routing.empty()) out.push_back({"routing of experts", std::nullopt, "given", RoutingAssumed(report)});
  if (report.has_workspaces) {
    out.push_back({"workspaces of cuDNN", std::nullopt, "given", WorkspacesText(CudnnOf(report.results))});
  }
  const std::vector<GivenValue> values = GivenValues(report);
  if (std::string read = ValuesThatWereRead(values); !read.empty()) {
    out.push_back({"values of the device", std::nullopt, "given", std::move(read)});
  }
  for (std::string& line : ValuesThatWereNot(values, ReadingLines(report))) {
    out.push_back({"a value that was not given", std::nullopt, "given", std::move(line)});
  }
  return out;
}

std::optional<DeviceAccount> AccountOf(const RunReport& report) {
  return AccountOf(report.results, report.machine, report.host_bytes);
}

std::optional<Condition> FitsUnless(const RunReport& report) {
  if (!report.machine.has_limit || FitOf(report) != FitState::kFits) return std::nullopt;
  const std::optional<DeviceAccount> account = AccountOf(report);
  return account.has_value() ? ConditionOf(*account, report.machine) : std::nullopt;
}

}  // namespace ashlar::cli
