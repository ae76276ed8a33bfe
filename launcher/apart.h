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

#include <map>
#include <string>
#include <vector>

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

  // Whether this Linux has them.
  static bool AreKnown();

 private:
  int rules_ = -1;
};

// Beside and over the environment of the first run. Makes the folders that it names.
std::map<std::string, std::string> EnvironmentApart(const std::string& folder);

// The files of others that the Python side kept it from writing, each once.
std::vector<std::string> KeptAway(const std::string& folder);

}  // namespace ashlar::cli

#endif  // ASHLAR_LAUNCHER_APART_H_
