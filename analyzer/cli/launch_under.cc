#include "analyzer/cli/launch_under.h"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "analyzer/cli/command.h"
#include "analyzer/cli/launch_explain.h"
#include "analyzer/cli/launch_files.h"
#include "analyzer/cli/launch_keep.h"
#include "analyzer/cli/launch_line.h"
#include "analyzer/cli/launch_program.h"
#include "analyzer/cli/launch_run.h"
#include "analyzer/cli/launch_served.h"
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
  const std::vector<std::string> not_kept = NotKept(results);
  for (const std::string& line : not_kept) Say(absl::StrCat("ashlar: ", line, "\n"));
  const absl::StatusOr<std::string> kept = KeepResults(results, output);
  if (!kept.ok()) {
    if (not_kept.empty() || !absl::IsNotFound(kept.status())) Fail(code, kept.status());
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

bool IsOverHollow() {
  const char* run = std::getenv("ASHLAR_HOLLOW_RUN");
  return run != nullptr && *run != '\0';
}

FoundProgram Find(const UnderFlags& flags) {
  const Under under = !flags.serves ? Under::kNothing : IsOverHollow() ? Under::kHollow : Under::kLibrary;
  return FindProgram(flags.program.front(), under);
}

// Of the libraries the recorder stands above: it sees what the program asks for, the other one serves that.
absl::StatusOr<std::map<std::string, std::string>> EnvironmentOf(const UnderFlags& flags, const std::string& folder) {
  std::map<std::string, std::string> out;
  std::string preloaded;
  if (flags.records) {
    const absl::StatusOr<std::string> python = FindPythonFolder();
    if (!python.ok()) return python.status();
    out["ASHLAR_RECORD"] = folder;
    out["PYTHONPATH"] = Prepended("PYTHONPATH", *python);
    preloaded = FindRecordLibrary();
    if (flags.history.has_value()) out["ASHLAR_HISTORY"] = absl::StrCat(*flags.history);
  }
  if (flags.serves) {
    const absl::StatusOr<std::string> library = FindServeLibrary();
    if (!library.ok()) return library.status();
    out["ASHLAR_SERVED"] = folder;
    preloaded = Preloaded(preloaded, *library);
    if (flags.conf.has_value()) out["ASHLAR_CONF"] = *flags.conf;
  }
  if (!preloaded.empty()) out["LD_PRELOAD"] = Prepended("LD_PRELOAD", preloaded);
  return out;
}

}  // namespace

int RunUnder(const UnderFlags& flags) {
  if (absl::Status status = NeedsProgram(flags.command, flags.program); !status.ok()) return Fail(kUsage, status);
  const FoundProgram found = Find(flags);
  if (!found.why_not.empty()) return Fail(found.exit_code, absl::InvalidArgumentError(found.why_not));
  const absl::StatusOr<std::unique_ptr<RunFolder>> folder = RunFolder::Make();
  if (!folder.ok()) return Fail(kUnreadable, folder.status());
  SignalRelay relay((*folder)->path());
  absl::StatusOr<std::map<std::string, std::string>> environment = EnvironmentOf(flags, (*folder)->path());
  if (!environment.ok()) return Fail(kUnreadable, environment.status());
  const absl::StatusOr<int> code = RunProgram({found.path, flags.program, *std::move(environment)}, **folder, relay);
  if (!code.ok()) return Fail(kUnreadable, code.status());
  if (flags.serves) Say(ToText(ReadServed((*folder)->path())));
  return flags.records ? FinishRecord(flags, *code, ReadResults((*folder)->path())) : *code;
}

}  // namespace ashlar::cli
