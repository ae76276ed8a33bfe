// Starts a program and waits for it: an environment, a process group with the terminal's foreground.
//
//   absl::StatusOr<std::unique_ptr<RunFolder>> folder = RunFolder::Make();
//   SignalRelay relay((*folder)->path());            // before any thread is started
//   absl::StatusOr<int> code = RunProgram({"/usr/bin/python3", {"python3", "train.py"}, {...}}, **folder, relay);
//
// One run a process; others of the same program are rerun.h's. The thread that makes the relay is the one that
// runs the program.
#ifndef ASHLAR_LAUNCHER_RUN_PROGRAM_H_
#define ASHLAR_LAUNCHER_RUN_PROGRAM_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "launcher/run_folder.h"
#include "launcher/signal_relay.h"

namespace ashlar::cli {

struct Launch {
  std::string path;
  std::vector<std::string> arguments;              // the program's name first
  std::map<std::string, std::string> environment;  // beside and over our own
  bool has_fixed_addresses = false;                // no randomisation of the address space
  bool prints_to_stderr = false;                   // standard output goes to standard error
};

// "NAME=value" of this process's environment, with these beside and over it.
std::vector<std::string> EnvironmentWith(const std::map<std::string, std::string>& more);
// As execve wants them: null at the end.
std::vector<char*> PointersTo(std::vector<std::string>& texts);
// In the new process. Safe after a fork.
void FixAddresses(const Launch& launch);
int ShellCode(int status);  // of waitpid

// The exit code as a shell has it: 128 + N for a program that signal N ended, 126 or 127 where it did not start.
// Unavailable where no process could be made.
//
// Where this process leads its group on a terminal, as a shell's job does, the program leads one of its own: it gets
// the terminal's foreground until it ends, and when it is stopped there, so is this process's group. Else it stays in
// this process's group.
absl::StatusOr<int> RunProgram(const Launch& launch, const RunFolder& folder, SignalRelay& relay);

// `value` before what the variable has now, with a colon between.
std::string Prepended(const char* variable, const std::string& value);

}  // namespace ashlar::cli

#endif  // ASHLAR_LAUNCHER_RUN_PROGRAM_H_
