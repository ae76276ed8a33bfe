// The program ashlar. Exit codes: 0 fine, 1 a check failed, 2 usage, 3 unreadable input.
#include <functional>
#include <optional>
#include <sstream>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "analyzer/cli/bound.h"
#include "analyzer/cli/check.h"
#include "analyzer/cli/command.h"
#include "analyzer/cli/convert.h"
#include "analyzer/cli/diff.h"
#include "analyzer/cli/estimate.h"
#include "analyzer/cli/explain.h"
#include "analyzer/cli/replay.h"
#include "analyzer/cli/run.h"
#include "analyzer/cli/sweep.h"
#include "analyzer/cli/usage_error.h"

int main(int argc, char** argv) {
  CLI::App program("Explains GPU memory: replays allocation traces through a caching allocator's own code.", "ashlar");
  program.require_subcommand(1);
  program.set_version_flag("--version", ASHLAR_VERSION);
  std::function<int()> run;
  ashlar::cli::AddExplain(program, run);
  ashlar::cli::AddReplay(program, run);
  ashlar::cli::AddCheck(program, run);
  ashlar::cli::AddDiff(program, run);
  ashlar::cli::AddBound(program, run);
  ashlar::cli::AddSweep(program, run);
  ashlar::cli::AddConvert(program, run);
  ashlar::cli::AddEstimate(program, run);
  ashlar::cli::AddRun(program, run);
  try {
    program.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help, --version
    const std::optional<std::string> wrong = ashlar::cli::WrongCommand(program, argc, argv);
    if (wrong.has_value() && absl::StrContains(*wrong, "there is no")) {  // its help was asked for
      return ashlar::cli::Fail(ashlar::cli::kUsage, absl::InvalidArgumentError(*wrong));
    }
    std::ostringstream text;
    program.exit(success, text);
    return ashlar::cli::Print(text.str()) ? ashlar::cli::kOk : ashlar::cli::kUnreadable;
  } catch (const CLI::ParseError& error) {
    return ashlar::cli::Fail(ashlar::cli::kUsage,
                             absl::InvalidArgumentError(ashlar::cli::UsageError(program, error, argc, argv)));
  }
  return run();
}
