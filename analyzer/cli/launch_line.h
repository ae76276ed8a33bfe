// The command line of a command that starts a program: what stands behind "--" is the program's, untouched.
//
//   LaunchLine line = SplitAtProgram(argc, argv);   // ashlar dry-run --device T4 -- python train.py --device 0
//   line.program;                                   // {"python", "train.py", "--device", "0"}
#ifndef ASHLAR_ANALYZER_CLI_LAUNCH_LINE_H_
#define ASHLAR_ANALYZER_CLI_LAUNCH_LINE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace ashlar::cli {

struct LaunchLine {
  int argc = 0;  // of what is before it
  std::vector<std::string> program = {};
};

// Whether the command starts a program: dry-run, record, run-under.
bool StartsProgram(absl::string_view command);

// Of every other command the whole line, without a program.
LaunchLine SplitAtProgram(int argc, const char* const* argv);

// InvalidArgument where there is no program, with how to give one to the command.
absl::Status NeedsProgram(const char* command, const std::vector<std::string>& program);

}  // namespace ashlar::cli

#endif  // ASHLAR_ANALYZER_CLI_LAUNCH_LINE_H_
