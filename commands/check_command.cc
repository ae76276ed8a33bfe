#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "commands/check/check.h"
#include "commands/commands.h"
#include "commands/shared/layout.h"
#include "console/command.h"
#include "console/load_trace.h"
#include "console/output_file.h"
#include "console/progress_line.h"
#include "console/terminal.h"

namespace ashlar::cli {
namespace {

constexpr int kNotAnswered = 4;  // the exit code where no limit is broken, and one is not in the trace
constexpr std::int64_t kMostCount = 1'000'000'000;  // of --max-retries and --max-ooms

struct CheckFlags {
  std::string input;
  std::string max_reserved;
  std::optional<double> min_utilisation;
  std::optional<std::uint64_t> max_retries;
  std::string max_leak_per_step;
  std::optional<std::uint64_t> max_ooms;
  std::string baseline;
  std::string max_growth;
  std::string junit;
  FormatFlags format;
  ReplayFlags replay;
};

// "3%" or a size; nullopt: no baseline is given.
absl::StatusOr<std::optional<answers::CheckGrowth>> ReadGrowth(const CheckFlags& flags) {
  if (flags.baseline.empty() != flags.max_growth.empty()) {
    return absl::InvalidArgumentError("--baseline FILE and --max-growth, such as 3% or 100MiB, go together");
  }
  if (flags.baseline.empty()) return std::nullopt;
  answers::CheckGrowth out;
  absl::string_view percent = flags.max_growth;
  if (absl::ConsumeSuffix(&percent, "%")) {
    double share = 0;
    if (!absl::SimpleAtod(percent, &share) || !(share >= 0 && share <= 1e6)) {
      return absl::InvalidArgumentError(absl::StrCat("--max-growth: '", flags.max_growth, "' is no share, such as 3%"));
    }
    out.share = share / 100;
    return out;
  }
  std::optional<std::uint64_t> bytes;
  if (absl::Status status =
          ReadSize("--max-growth", flags.max_growth, {.begin_bytes = 0, .least_plain_bytes = 0}, bytes);
      !status.ok()) {
    return status;
  }
  out.bytes = bytes.value_or(0);
  return out;
}

absl::Status ReadBaseline(const CheckFlags& flags, const answers::ReplaySettings& settings,
                          answers::CheckLimits& limits) {
  if (!limits.max_growth.has_value()) return absl::OkStatus();
  const absl::StatusOr<std::vector<answers::TracedRun>> runs = LoadDevices(flags.baseline, flags.replay, settings);
  if (!runs.ok()) return runs.status();
  for (const answers::TracedRun& run : *runs) {
    if (!run.has_events) continue;  // one state, whose peak is not known
    limits.max_growth->peaks.emplace_back(run.device, run.timeline.reserved_peak().bytes);
  }
  return absl::OkStatus();
}

absl::StatusOr<answers::CheckLimits> ReadLimits(const CheckFlags& flags) {
  answers::CheckLimits out;
  absl::Status status = ReadSize("--max-reserved", flags.max_reserved, {.begin_bytes = 0}, out.max_reserved_bytes);
  status.Update(ReadSize("--max-leak-per-step", flags.max_leak_per_step, {.begin_bytes = 0, .least_plain_bytes = 0},
                         out.max_leak_bytes_per_step));
  if (!status.ok()) return status;
  if (flags.min_utilisation.has_value() && !(*flags.min_utilisation >= 0 && *flags.min_utilisation <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--min-utilisation: ", *flags.min_utilisation, " is not between 0 and 1"));
  }
  out.min_utilisation = flags.min_utilisation;
  out.max_retries = flags.max_retries;
  out.max_ooms = flags.max_ooms;
  absl::StatusOr<std::optional<answers::CheckGrowth>> growth = ReadGrowth(flags);
  if (!growth.ok()) return growth.status();
  out.max_growth = *std::move(growth);
  if (!out.IsEmpty()) return out;
  return absl::InvalidArgumentError("check needs a limit, such as --max-reserved 14GiB; see ashlar check --help");
}

std::string Printed(const answers::CheckAnswer& report, const CheckFlags& flags) {
  if (flags.format.IsMarkdown()) return report::ToMarkdown(report);
  return flags.format.IsJson() ? report::ToJson(report) : Colored(report::Fitted(report::ToText(report), {}));
}

int RunCheck(const CheckFlags& flags) {
  absl::StatusOr<answers::CheckLimits> limits = ReadLimits(flags);
  if (!limits.ok()) return Fail(kUsage, limits.status());
  absl::StatusOr<answers::ReplaySettings> settings = ReadReplayFlags(flags.replay);
  if (!settings.ok()) return Fail(kUsage, settings.status());
  if (absl::Status status = NoInputIsWritten({flags.input, flags.baseline}, {{"--junit", flags.junit}}); !status.ok()) {
    return Fail(kUsage, status);
  }
  if (flags.input == "-" && flags.baseline == "-") {
    return Fail(kUsage, absl::InvalidArgumentError("only one of the two inputs can be standard input (-)"));
  }
  ProgressLine line;
  settings->progress = line.Shower();
  if (absl::Status status = ReadBaseline(flags, *settings, *limits); !status.ok()) return FailLoad(status);
  const absl::StatusOr<std::vector<answers::TracedRun>> runs = LoadDevices(flags.input, flags.replay, *settings);
  if (!runs.ok()) return FailLoad(runs.status());
  line.Show("holding the limits against it");
  const answers::CheckAnswer report = answers::CheckDevices(flags.input, *runs, *limits);
  if (!flags.junit.empty()) {
    if (absl::Status status = WriteFile(flags.junit, report::ToJUnit(report)); !status.ok()) {
      return Fail(kUnreadable, absl::UnavailableError(absl::StrCat("--junit: ", status.message())));
    }
  }
  if (!Print(Printed(report, flags))) return kUnreadable;
  if (report.Passed()) return kOk;
  return report.CountOf(answers::CheckVerdict::kBroken) > 0 ? kCheckFailed : kNotAnswered;
}

}  // namespace

void AddCheck(CommandLine& line) {
  Command app = line.AddCommand(
      "check", "hold limits against a trace; exit code 1 where one is broken, 4 where the trace does not tell");
  app.Example("ashlar check snapshot.pickle --max-reserved 14GiB --max-ooms 0");
  auto flags = std::make_shared<CheckFlags>();
  app.Add("trace", flags->input, "a file, or - for standard input").Required();
  app.Add("--max-reserved", flags->max_reserved, "peak of reserved memory, such as 14GiB").Takes("SIZE");
  app.Add("--min-utilisation", flags->min_utilisation, "peak allocated / peak reserved, 0 to 1");
  app.Add("--max-retries", flags->max_retries, "requests that had to return the cache first").Between(0, kMostCount);
  app.Add("--max-leak-per-step", flags->max_leak_per_step, "bytes that a step leaves behind, such as 1MiB")
      .Takes("SIZE");
  app.Add("--max-ooms", flags->max_ooms, "requests that failed").Between(0, kMostCount);
  app.Add("--baseline", flags->baseline, "a snapshot or trace of an earlier run, for --max-growth").Takes("FILE");
  app.Add("--max-growth", flags->max_growth,
          "how far the peak of reserved memory may lie above the baseline's, such as 3% or 100MiB")
      .Takes("SIZE|SHARE");
  app.Add("--junit", flags->junit, "also write JUnit XML to this file, one test case a limit").Takes("FILE");
  AddFormatFlags(app, "print JSON (ashlar schema check)", flags->format);
  AddColorFlag(app);
  AddReplayFlags(app, flags->replay);
  app.OnRun([flags] { return RunCheck(*flags); });
}

}  // namespace ashlar::cli
