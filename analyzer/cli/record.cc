#include "analyzer/cli/record.h"

#include <cstdio>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "analyzer/cli/command.h"
#include "analyzer/cli/launch_explain.h"
#include "analyzer/cli/launch_files.h"
#include "analyzer/cli/launch_keep.h"
#include "analyzer/cli/launch_line.h"
#include "analyzer/cli/launch_program.h"
#include "analyzer/cli/launch_run.h"
#include "analyzer/cli/progress_line.h"
#include "analyzer/report/text.h"

namespace ashlar::cli {
namespace {

constexpr char kUsualOutput[] = "ashlar-history";

struct RecordFlags {
  std::vector<std::string> program;
  std::optional<std::uint64_t> history;
  std::string output;
};

void Say(const std::string& text) {
  ProgressLine::End();
  std::fputs(text.c_str(), stderr);
}

// The program's own exit code, but for what it could not know of.
int FinishRecord(const RecordFlags& flags, int code, const RunResults& results) {
  const ProcessRun* run = ToExplain(results);
  const std::string output =
      !flags.output.empty() ? flags.output : absl::StrCat(kUsualOutput, run == nullptr ? "" : EndingOf(*run));
  const absl::StatusOr<std::string> kept = KeepResults(results, output);
  if (!kept.ok()) {
    Fail(code, kept.status());
    return code == kOk && !absl::IsNotFound(kept.status()) ? kUnreadable : code;
  }
  for (const std::string& file : results.unreadable) Say(absl::StrCat("ashlar: ", file, "\n"));
  if (run->OutOfMemory() > 0) {
    ProgressLine line;
    const absl::StatusOr<answers::Explanation> explanation = ExplainProcess(*run, ProcessMemory{}, line.Shower());
    if (explanation.ok()) Say(absl::StrCat(run->Name(), ": ", report::ToText(*explanation)));
    if (!explanation.ok()) Fail(code, explanation.status());
  }
  Say(absl::StrCat("ashlar: the history is in ", *kept, "; see it with: ashlar explain ", *kept,
                   *kept == output && results.runs.size() > 1 ? "/FILE" : "", "\n"));
  return code;
}

int RunRecord(const RecordFlags& flags) {
  if (absl::Status status = NeedsProgram("record", flags.program); !status.ok()) return Fail(kUsage, status);
  const absl::StatusOr<std::string> python = FindPythonFolder();
  if (!python.ok()) return Fail(kUnreadable, python.status());
  const FoundProgram found = FindProgram(flags.program.front(), /*is_preloaded=*/false);
  if (!found.why_not.empty()) return Fail(found.exit_code, absl::InvalidArgumentError(found.why_not));
  const absl::StatusOr<std::unique_ptr<RunFolder>> folder = RunFolder::Make();
  if (!folder.ok()) return Fail(kUnreadable, folder.status());
  SignalRelay relay((*folder)->path());
  Launch launch;
  launch.path = found.path;
  launch.arguments = flags.program;
  launch.environment = {{"ASHLAR_RECORD", (*folder)->path()}, {"PYTHONPATH", Prepended("PYTHONPATH", *python)}};
  if (const std::string library = FindRecordLibrary(); !library.empty()) {
    launch.environment["LD_PRELOAD"] = Prepended("LD_PRELOAD", library);
  }
  if (flags.history.has_value()) launch.environment["ASHLAR_HISTORY"] = absl::StrCat(*flags.history);
  const absl::StatusOr<int> code = RunProgram(launch, relay);
  if (!code.ok()) return Fail(kUnreadable, code.status());
  return FinishRecord(flags, *code, ReadResults((*folder)->path()));
}

}  // namespace

void AddRecord(CommandLine& line, std::vector<std::string> program) {
  Command app = line.AddCommand("record", "run a program and keep its memory history: -- PROGRAM ARGS...");
  app.Example("ashlar record -o run.pickle -- python train.py");
  auto flags = std::make_shared<RecordFlags>();
  flags->program = std::move(program);
  app.Add("--history", flags->history, "events that PyTorch records at most (default 1,000,000)");
  app.Add("-o,--output", flags->output,
          absl::StrCat("a file of one process, a folder of several (default ", kUsualOutput, ".pickle of PyTorch, ",
                       kUsualOutput, ".ashlar of a native program)"))
      .NotEmpty();
  app.OnRun([flags] { return RunRecord(*flags); });
}

}  // namespace ashlar::cli
