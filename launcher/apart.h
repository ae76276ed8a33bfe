// How a program that is run again is kept apart from all that its first run left: Linux refuses its writes outside a
// folder of its own, and its environment gives it other ports, caches and no trackers. The Python side (ashlar_hollow
// apart.py) sends its files into that folder, so that it goes on.
//
//   const Walls walls(folder);              // before the fork
//   if (!walls.stand()) return;             // this Linux has no Landlock: nothing is run again
//   if (!walls.GoBehind()) _exit(126);      // in the new process
//
// What stays open: reading, /dev (with /dev/shm, where processes of one run meet) and the network of programs that are
// not Python.
#ifndef ASHLAR_LAUNCHER_APART_H_
#define ASHLAR_LAUNCHER_APART_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "launcher/run_folder.h"
#include "launcher/run_program.h"

namespace ashlar::cli {

// Landlock's rules, which a process and its children never leave.
class Walls {
 public:
  explicit Walls(const std::string& folder);
  ~Walls();
  Walls(const Walls&) = delete;
  Walls& operator=(const Walls&) = delete;

  bool stand() const { return rules_ >= 0; }
  // Of the calling process; safe after a fork.
  bool GoBehind() const;
  int rules() const { return rules_; }

  // Whether this Linux has them.
  static bool AreKnown();

 private:
  int rules_ = -1;
};

// With the environment of a run in that folder beside and over the first run's. Makes the folders that it names.
Launch LaunchApart(Launch launch, const RunFolder& folder);

// What a run apart begins with: its rules, no input, and a file of the folder for what it prints.
class ApartFiles {
 public:
  explicit ApartFiles(const RunFolder& folder);
  ~ApartFiles();
  ApartFiles(const ApartFiles&) = delete;
  ApartFiles& operator=(const ApartFiles&) = delete;

  absl::Status status() const;  // Unavailable, and why
  const Walls& walls() const { return walls_; }
  int input() const { return input_; }
  int output() const { return output_; }

 private:
  const Walls walls_;
  const int input_;
  const int output_;
};

std::string OutputIn(const RunFolder& folder);

// Starts it, in a session of its own, which ends with this process. Descriptor `kept`, unless it is -1, stays open
// there.
absl::StatusOr<pid_t> StartApart(const Launch& launch, const RunFolder& folder, int kept = -1);

// The files of others that the Python side kept it from writing, each once.
std::vector<std::string> KeptAway(const std::string& folder);
// What it was kept from connecting to, "HOST:PORT", each once.
std::vector<std::string> NotSent(const std::string& folder);

}  // namespace ashlar::cli

#endif  // ASHLAR_LAUNCHER_APART_H_
