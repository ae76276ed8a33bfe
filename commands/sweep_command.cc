#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "commands/commands.h"
#include "commands/shared/input.h"
#include "commands/shared/layout.h"
#include "commands/sweep/sweep.h"
#include "console/command.h"
#include "console/load_trace.h"
#include "console/memory_end.h"
#include "console/output_file.h"
#include "console/progress_line.h"
#include "console/terminal.h"

namespace ashlar::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct SweepFlags {
  std::vector<std::string> inputs;
  std::optional<std::string> confs;
  std::optional<std::uint64_t> budget;
  std::optional<double> seconds;
  std::optional<std::uint64_t> jobs;
  std::uint64_t rows = 12;
  FormatFlags format;
  std::string json_to;
  ReplayFlags replay;
};

absl::StatusOr<answers::SweepOptions> ReadSweepFlags(const SweepFlags& flags) {
  answers::SweepOptions out;
  if (flags.confs.has_value()) {
    absl::StatusOr<std::vector<std::string>> confs = ReadConfs(*flags.confs);
    if (!confs.ok()) {
      return absl::Status(confs.status().code(), absl::StrCat("--confs: ", confs.status().message()));
    }
    out.confs = *std::move(confs);
  }
  if (flags.budget == 0) return absl::InvalidArgumentError("--budget: at least 1 replay");
  out.budget_replays = flags.budget.value_or(0);
  if (flags.jobs.has_value() && (*flags.jobs == 0 || *flags.jobs > kMostThreads)) {
    return absl::InvalidArgumentError(absl::StrCat("--jobs: ", *flags.jobs, " is not between 1 and ", kMostThreads));
  }
  out.threads = static_cast<std::size_t>(flags.jobs.value_or(0));
  if (flags.seconds.has_value() && !(*flags.seconds > 0)) {
    return absl::InvalidArgumentError("--seconds: more than 0");
  }
  return out;
}

absl::StatusOr<answers::SweepAnswer> RunWithProgress(std::vector<answers::WhatIfInput> inputs,
                                                     answers::SweepOptions options, std::optional<double> seconds,
                                                     ProgressLine& progress) {
  options.progress = [&progress](std::uint64_t replays) {
    progress.Show(absl::StrCat(FormatCount(replays), " replays"));
  };
  if (seconds.has_value()) {
    const Clock::time_point begin = Clock::now();
    options.should_stop = [begin, limit = std::chrono::duration<double>(*seconds)] {
      return Clock::now() - begin >= limit;
    };
  }
  return answers::Sweep(std::move(inputs), options);
}

absl::StatusOr<answers::WhatIfInput> SweepInput(const std::string& name, absl::string_view bytes,
                                                const ReplayFlags& flags, const answers::ReplaySettings& settings) {
  const auto fits = [&flags](formats::InputKind kind) {
    return kind == formats::InputKind::kPlainTrace ? NoSnapshotFlags(flags) : absl::OkStatus();
  };
  absl::StatusOr<answers::Input> input = answers::LoadInput(bytes, {.limits = LimitsOf(flags), .fits = fits});
  if (input.ok() && !settings.window.IsWhole()) {
    input = answers::CutInput(*std::move(input), settings.window, settings.device);
  }
  if (!input.ok()) return input.status();
  return answers::SweepInputOf(name, *input, NamingProgress(name, settings));
}

std::string Printed(const answers::SweepAnswer& answer, const SweepFlags& flags) {
  if (flags.format.IsMarkdown()) return report::ToMarkdown(answer);
  return flags.format.IsJson() ? report::ToJson(answer) : Colored(report::Fitted(report::ToText(answer), {}));
}

int RunSweep(const SweepFlags& flags) {
  absl::StatusOr<answers::ReplaySettings> settings = ReadReplayFlags(flags.replay);
  if (!settings.ok()) return Fail(kUsage, settings.status());
  const absl::StatusOr<answers::SweepOptions> sweep = ReadSweepFlags(flags);
  if (!sweep.ok()) return Fail(kUsage, sweep.status());
  if (std::count(flags.inputs.begin(), flags.inputs.end(), "-") > 1) {
    return Fail(kUsage, absl::InvalidArgumentError("standard input (-) can be one trace only"));
  }
  if (absl::Status status = NoInputIsWritten(flags.inputs, {{"--json-to", flags.json_to}}); !status.ok()) {
    return Fail(kUsage, status);
  }
  ProgressLine line;
  settings->progress = line.Shower();
  std::vector<answers::WhatIfInput> inputs;
  for (const std::string& name : flags.inputs) {
    const absl::StatusOr<formats::InputBytes> bytes = LoadBytes(name, *settings);
    if (!bytes.ok()) return Fail(kUnreadable, bytes.status());
    absl::StatusOr<answers::WhatIfInput> input = SweepInput(name, *bytes, flags.replay, *settings);
    if (!input.ok()) return FailInput(name, input.status());
    inputs.push_back(*std::move(input));
    KeepOfMemory(0.1);
  }
  absl::StatusOr<answers::SweepAnswer> answer = RunWithProgress(std::move(inputs), *sweep, flags.seconds, line);
  if (!answer.ok()) return Fail(kUsage, answer.status());
  answer->rows_shown = static_cast<std::size_t>(flags.rows);
  const bool is_written = WriteJson(flags.json_to, [&] { return report::ToJson(*answer); });
  const bool is_printed = Print(Printed(*answer, flags));
  return is_written && is_printed ? kOk : kUnreadable;
}

}  // namespace

void AddSweep(CommandLine& line) {
  Command app = line.AddCommand("sweep", "search the settings that serve one trace or several best");
  app.Example("ashlar sweep rank0.pickle rank1.pickle --capacity 80GiB");
  auto flags = std::make_shared<SweepFlags>();
  app.Add("traces", flags->inputs, "snapshots or request traces; - is standard input").Required();
  app.Add("--confs", flags->confs, "only these: a file with one a line, or a list with ; between").Takes("CONFS");
  app.Add("--budget", flags->budget, "how many replays the search may take (default: by the traces' length)");
  app.Add("--seconds", flags->seconds, "end the search after this time; the result then depends on the machine");
  app.Add("--jobs", flags->jobs, "threads (default: one a core); the result does not depend on it");
  app.Add("--rows", flags->rows, "rows of the table (default 12); --json has all");
  AddFormatFlags(app, "print JSON (ashlar schema sweep)", flags->format);
  AddJsonFile(app, flags->json_to);
  AddColorFlag(app);
  AddReplayFlags(app, flags->replay);
  app.OnRun([flags] { return RunSweep(*flags); });
}

}  // namespace ashlar::cli
