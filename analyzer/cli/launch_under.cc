#include "analyzer/cli/launch_under.h"

#include <cstdio>
#include <memory>
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

void Say(const std::string& text) {
  ProgressLine::End();
  std::fputs(text.c_str(), stderr);
}

// Keeps the history, and explains a request that failed.
int FinishRecord(const UnderFlags& flags, int code, const RunResults& results) {
  const ProcessRun* run = ToExplain(results);
  const std::string output =
      !flags.output.empty() ? flags.output : absl::StrCat(kUsualHistory, run == nullptr ? "" : EndingOf(*run));
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

}  // namespace

int RunUnder(const UnderFlags& flags) {
  if (absl::Status status = NeedsProgram(flags.command, flags.program); !status.ok()) return Fail(kUsage, status);
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

}  // namespace ashlar::cli
