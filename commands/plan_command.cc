#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "commands/commands.h"
#include "commands/plan/plan.h"
#include "console/command.h"
#include "console/load_trace.h"
#include "console/output_file.h"
#include "console/progress_line.h"

namespace ashlar::cli {
namespace {

// As for `ashlar bound`.
constexpr double kPlanStepsPerSecond = 300e6;
constexpr double kMostPlanSeconds = 86'400;

struct PlanFlags {
  std::string input;
  std::string output;
  double seconds = 1;
  bool repeats = false;
  bool json = false;
  ReplayFlags replay;
};

int RunPlan(const PlanFlags& flags) {
  if (!(flags.seconds >= 0 && flags.seconds <= kMostPlanSeconds)) {
    return Fail(kUsage, absl::InvalidArgumentError(
                            absl::StrCat("--seconds: ", flags.seconds, " is not between 0 and ", kMostPlanSeconds)));
  }
  absl::StatusOr<answers::ReplaySettings> settings = ReadReplayFlags(flags.replay);
  if (!settings.ok()) return Fail(kUsage, settings.status());
  if (absl::Status status = NoInputIsWritten({flags.input}, {{"--output", flags.output}}); !status.ok()) {
    return Fail(kUsage, status);
  }
  ProgressLine line;
  settings->progress = line.Shower();
  const absl::StatusOr<answers::TracedRun> run = LoadTrace(flags.input, flags.replay, *settings);
  if (!run.ok()) return FailLoad(run.status());
  const answers::PlanSearch search{static_cast<std::uint64_t>(flags.seconds * kPlanStepsPerSecond), flags.repeats};
  absl::StatusOr<answers::PlanAnswer> answer =
      answers::PlanOfTrace(flags.input, *run, search, NamingProgress(flags.input, *settings).progress);
  if (!answer.ok()) return FailLoad(OfInput(flags.input, answer.status()));
  answer->output = flags.output;
  if (absl::Status status = WriteFile(flags.output, policy::PlanText(answer->made.plan)); !status.ok()) {
    return Fail(kUnreadable, absl::UnavailableError(absl::StrCat("--output: ", status.message())));
  }
  return Print(flags.json ? report::ToJson(*answer) : report::ToText(*answer)) ? kOk : kUnreadable;
}

}  // namespace

void AddPlan(CommandLine& line) {
  Command app = line.AddCommand("plan", "plan where the blocks of a run go, to fit it into hardly more than it holds");
  app.Example("ashlar plan run.ashlar -o run.plan");
  auto flags = std::make_shared<PlanFlags>();
  app.Add("input", flags->input, "a snapshot, a recording or a request trace, or - for stdin").Required();
  app.Add("-o,--output", flags->output, "write the plan to this file, for plan:FILE in ASHLAR_CONF")
      .Takes("FILE")
      .Required();
  app.Add("--seconds", flags->seconds, "how long to search, counted in steps of the search (default 1)");
  app.Add("--repeats", flags->repeats, "the runs that follow it ask for the same as this one: hold no steps out");
  app.Add("--json", flags->json, "print JSON (ashlar schema plan)");
  AddPolicyFlags(app, flags->replay);
  app.OnRun([flags] { return RunPlan(*flags); });
}

}  // namespace ashlar::cli
