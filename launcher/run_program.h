// Starts a program and waits for it: a folder of its own for what it leaves, an environment, a process group with the
// terminal's foreground.
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
#include "launcher/signal_relay.h"

namespace ashlar::cli {

// In /dev/shm, else in TMPDIR or /tmp; gone with all that is in it when it is destroyed. What a launcher that was
// killed left goes with the next one, once its program has ended too: both hold the lock.
class RunFolder {
 public:
  static absl::StatusOr<std::unique_ptr<RunFolder>> Make();
  // On disk: in TMPDIR or /tmp.
  static absl::StatusOr<std::unique_ptr<RunFolder>> MakeOnDisk();
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  const std::string& path() const { return path_; }
  // In the new process, which holds the lock too: it ends with what the process becomes, or when that closes it.
  void HoldInProgram() const;

 private:
  static absl::StatusOr<std::unique_ptr<RunFolder>> MakeIn(const std::vector<std::string>& places);
  RunFolder(std::string path, int lock) : path_(std::move(path)), lock_(lock) {}

  std::string path_;
  int lock_;  // held while the folder is in use
};

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
