#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "analyzer/formats/plain/minimalloc_csv.h"
#include "commands/bound/bound.h"
#include "commands/commands.h"
#include "commands/shared/layout.h"
#include "console/command.h"
#include "console/load_trace.h"
#include "console/output_file.h"
#include "console/progress_line.h"

namespace ashlar::cli {
namespace {

// Steps of the search that a core of 2023 takes in a second; counted, so that the answer does not depend on the
// machine.
constexpr double kStepsPerSecond = 300e6;
constexpr double kMostSeconds = 86'400;

struct BoundFlags {
  std::string input;
  double seconds = 5;
  std::string csv;
  bool json = false;
  ReplayFlags replay;
};

absl::StatusOr<answers::BoundAnswer> BoundOf(const answers::Input& input, const BoundFlags& flags,
                                             const answers::ReplaySettings& settings) {
  const auto max_steps = static_cast<std::uint64_t>(flags.seconds * kStepsPerSecond);
  if (input.problem() != nullptr) {
    absl::StatusOr<answers::BoundAnswer> out =
        answers::BoundOfProblem(flags.input, *input.problem(), max_steps, settings.progress);
    return out.ok() ? std::move(out) : OfInput(flags.input, out.status());
  }
  const absl::StatusOr<answers::TracedRun> run = answers::TraceInput(input, settings);
  if (!run.ok()) return OfInput(flags.input, run.status());
  return answers::BoundOfTrace(flags.input, *run, max_steps, settings.progress);
}

int RunBound(const BoundFlags& flags) {
  if (!(flags.seconds >= 0 && flags.seconds <= kMostSeconds)) {
    return Fail(kUsage, absl::InvalidArgumentError(
                            absl::StrCat("--seconds: ", flags.seconds, " is not between 0 and ", kMostSeconds)));
  }
  absl::StatusOr<answers::ReplaySettings> settings = ReadReplayFlags(flags.replay);
  if (!settings.ok()) return Fail(kUsage, settings.status());
  if (absl::Status status = NoInputIsWritten({flags.input}, {{"--csv", flags.csv}}); !status.ok()) {
    return Fail(kUsage, status);
  }
  ProgressLine line;
  settings->progress = line.Shower();
  const absl::StatusOr<formats::InputBytes> bytes = LoadBytes(flags.input, *settings);
  if (!bytes.ok()) return Fail(kUnreadable, bytes.status());
  const absl::StatusOr<answers::Input> input = InputOf(flags.input, *bytes, flags.replay, {.problems = true});
  if (!input.ok()) return FailLoad(input.status());
  const absl::StatusOr<answers::BoundAnswer> report = BoundOf(*input, flags, NamingProgress(flags.input, *settings));
  if (!report.ok()) return FailLoad(report.status());
  if (!flags.csv.empty()) {
    if (absl::Status status = WriteFile(flags.csv, formats::WriteMinimallocCsv(report->problem)); !status.ok()) {
      return Fail(kUnreadable, absl::UnavailableError(absl::StrCat("--csv: ", status.message())));
    }
  }
  return Print(flags.json ? report::ToJson(*report) : report::Fitted(report::ToText(*report), {})) ? kOk : kUnreadable;
}

}  // namespace

void AddBound(CommandLine& line) {
  Command app = line.AddCommand("bound", "how little memory a trace needs, and which setting comes closest");
  app.Example("ashlar bound snapshot.pickle");
  auto flags = std::make_shared<BoundFlags>();
  app.Add("input", flags->input, "a snapshot, a request trace or a packing problem (CSV), or - for stdin").Required();
  app.Add("--seconds", flags->seconds, "how long to search, counted in steps of the search (default 5)");
  app.Add("--csv", flags->csv, "write the lifetimes with their offsets to this file (id,lower,upper,size,offset)")
      .Takes("FILE");
  app.Add("--json", flags->json, "print JSON (ashlar schema bound)");
  AddPolicyFlags(app, flags->replay);
  app.OnRun([flags] { return RunBound(*flags); });
}

}  // namespace ashlar::cli
