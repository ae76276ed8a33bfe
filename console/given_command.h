// The command line as it was given, as a page names what made it: a line that pastes into a shell where the files lie.
//
//   KeepCommand(line.argc, argv, line.program);   // ashlar report 'dumps/my run.pickle' -o /a/page.html
//   GivenCommand();                               // ashlar report 'my run.pickle' -o page.html
//
// Files are named without their folders, so that a page that is sent on tells nothing of a machine and is the same
// wherever it was made. Words of a program that is run are left as they are. Not thread-safe.
#ifndef ASHLAR_CONSOLE_GIVEN_COMMAND_H_
#define ASHLAR_CONSOLE_GIVEN_COMMAND_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace ashlar::cli {

// Once, before a command runs. `program`: what stood behind "--".
void KeepCommand(int argc, const char* const* argv, const std::vector<std::string>& program);
// The last words of what was kept are the program's.
void KeepAsProgram(const std::vector<std::string>& program);
// Empty where none was kept.
std::string GivenCommand();

// In single quotes where a shell would not take the word as it is.
std::string ShellWord(const std::string& word);

// The command line of a command that starts a program: what stands behind "--" is the program's, untouched.
//
//   LaunchLine line = SplitAtProgram(argc, argv);   // ashlar dry-run --device T4 -- python train.py --device 0
//   line.program;                                   // {"python", "train.py", "--device", "0"}
struct LaunchLine {
  int argc = 0;  // of what is before it
  std::vector<std::string> program = {};
};

// Whether the command starts a program: dry-run, fit, record, run-under.
bool StartsProgram(absl::string_view command);

// Of every other command the whole line, without a program.
LaunchLine SplitAtProgram(int argc, const char* const* argv);

// InvalidArgument where there is no program, with how to give one to the command.
absl::Status NeedsProgram(const char* command, const std::vector<std::string>& program);

}  // namespace ashlar::cli

#endif  // ASHLAR_CONSOLE_GIVEN_COMMAND_H_
