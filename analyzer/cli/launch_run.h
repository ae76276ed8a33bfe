// Starts a program and waits for it: a folder of its own for what it leaves, an environment, signals passed on.
//
//   absl::StatusOr<std::unique_ptr<RunFolder>> folder = RunFolder::Make();
//   SignalRelay relay((*folder)->path());            // before any thread is started
//   absl::StatusOr<int> code = RunProgram({"/usr/bin/python3", {"python3", "train.py"}, {...}}, relay);
//
// One run a process. The thread that makes the relay is the one that runs the program.
#ifndef ASHLAR_ANALYZER_CLI_LAUNCH_RUN_H_
#define ASHLAR_ANALYZER_CLI_LAUNCH_RUN_H_

#include <sys/types.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace ashlar::cli {

// In /dev/shm, else in TMPDIR or /tmp; gone with all that is in it when it is destroyed.
class RunFolder {
 public:
  static absl::StatusOr<std::unique_ptr<RunFolder>> Make();
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  RunFolder(std::string path, int lock) : path_(std::move(path)), lock_(lock) {}

  std::string path_;
  int lock_;  // held while the folder is in use
};

// SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1 and SIGUSR2 go to the program while it runs, but for those of a terminal,
// which it gets itself. Without a program they end this process, and the folder goes first.
class SignalRelay {
 public:
  explicit SignalRelay(const std::string& folder);
  SignalRelay(const SignalRelay&) = delete;
  SignalRelay& operator=(const SignalRelay&) = delete;

  // As fork(), and from now on to the new process.
  pid_t Fork();
  // There is none any more.
  void EndProgram();

 private:
  struct State {
    std::mutex mutex;
    std::string folder;
    pid_t program = 0;
  };
  std::shared_ptr<State> state_;  // the thread that waits for signals outlives the relay
};

struct Launch {
  std::string path;
  std::vector<std::string> arguments;              // the program's name first
  std::map<std::string, std::string> environment;  // beside and over our own
  bool has_fixed_addresses = false;                // no randomisation of the address space
  bool prints_to_stderr = false;                   // standard output goes to standard error
};

// The exit code as a shell has it: 128 + N for a program that signal N ended, 126 or 127 where it did not start.
// Unavailable where no process could be made.
absl::StatusOr<int> RunProgram(const Launch& launch, SignalRelay& relay);

// `value` before what the variable has now, with a colon between.
std::string Prepended(const char* variable, const std::string& value);

}  // namespace ashlar::cli

#endif  // ASHLAR_ANALYZER_CLI_LAUNCH_RUN_H_
