#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "commands/commands.h"
#include "commands/diff/diff.h"
#include "commands/shared/layout.h"
#include "console/command.h"
#include "console/load_trace.h"
#include "console/memory_end.h"
#include "console/progress_line.h"
#include "console/terminal.h"

namespace ashlar::cli {
namespace {

struct DiffFlags {
  std::string a, b;
  std::string at = "peak";
  std::string fail_over;
  FormatFlags format;
  ReplayFlags replay;
};

absl::StatusOr<answers::DiffMoment> ParseMoment(const std::string& at) {
  if (at == "peak") return answers::DiffMoment::kPeak;
  if (at == "oom") return answers::DiffMoment::kOom;
  if (at == "end") return answers::DiffMoment::kEnd;
  return absl::InvalidArgumentError(absl::StrCat("--at: '", at, "' is none of peak, oom, end"));
}

// Reserved or allocated memory, whichever grew more.
std::uint64_t GrewBy(const answers::DiffAnswer& diff) {
  const core::Accounting& a = diff.diff.a.bytes;
  const core::Accounting& b = diff.diff.b.bytes;
  return std::max(b.reserved_bytes - std::min(a.reserved_bytes, b.reserved_bytes),
                  b.allocated_bytes - std::min(a.allocated_bytes, b.allocated_bytes));
}

std::string Printed(const answers::DiffAnswer& diff, const DiffFlags& flags) {
  if (flags.format.IsMarkdown()) return report::ToMarkdown(diff);
  if (flags.format.IsJson()) return report::ToJson(diff);
  return Colored(report::Fitted(report::ToText(diff), {}));
}

int RunDiff(const DiffFlags& flags) {
  const absl::StatusOr<answers::DiffMoment> moment = ParseMoment(flags.at);
  if (!moment.ok()) return Fail(kUsage, moment.status());
  absl::StatusOr<answers::ReplaySettings> settings = ReadReplayFlags(flags.replay);
  if (!settings.ok()) return Fail(kUsage, settings.status());
  std::optional<std::uint64_t> most;
  if (absl::Status status = ReadSize("--fail-over", flags.fail_over, {.begin_bytes = 0, .least_plain_bytes = 0}, most);
      !status.ok()) {
    return Fail(kUsage, status);
  }
  if (flags.a == "-" && flags.b == "-") {
    return Fail(kUsage, absl::InvalidArgumentError("only one of the two inputs can be standard input (-)"));
  }
  ProgressLine line;
  settings->progress = line.Shower();
  const absl::StatusOr<answers::TracedRun> a = LoadTrace(flags.a, flags.replay, *settings);
  if (!a.ok()) return FailLoad(a.status());
  KeepOfMemory(0.5);
  const absl::StatusOr<answers::TracedRun> b = LoadTrace(flags.b, flags.replay, *settings);
  if (!b.ok()) return FailLoad(b.status());
  line.Show("comparing the two");
  const absl::StatusOr<answers::DiffAnswer> diff = answers::MakeDiff(flags.a, *a, flags.b, *b, *moment);
  if (!diff.ok()) return FailLoad(diff.status());
  if (!Print(Printed(*diff, flags))) return kUnreadable;
  return most.has_value() && GrewBy(*diff) > *most ? kCheckFailed : kOk;
}

}  // namespace

void AddDiff(CommandLine& line) {
  Command app = line.AddCommand("diff", "what grew between two snapshots or traces");
  app.Example("ashlar diff before.pickle after.pickle");
  auto flags = std::make_shared<DiffFlags>();
  app.Add("a", flags->a, "a file, or - for standard input").Required();
  app.Add("b", flags->b, "a file, or - for standard input").Required();
  app.Add("--at", flags->at, "the moment to compare: peak (of allocated memory; default), oom, end");
  app.Add("--fail-over", flags->fail_over,
          "exit code 1 where reserved or allocated memory grew by more, such as 100MiB")
      .Takes("SIZE");
  AddFormatFlags(app, "print JSON (ashlar schema diff)", flags->format);
  AddColorFlag(app);
  AddReplayFlags(app, flags->replay);
  app.OnRun([flags] { return RunDiff(*flags); });
}

}  // namespace ashlar::cli
