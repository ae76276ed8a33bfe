// Runs a program, unchanged, with libraries of ours under it: one that writes down its calls on device memory, one that
// serves them. `ashlar record` and `ashlar run-under` are this.
//
//   UnderFlags flags = {.command = "record", .program = {"./simulate"}, .records = true};
//   return RunUnder(flags);                             // the program's own exit code
#ifndef ASHLAR_LAUNCHER_RUN_UNDER_H_
#define ASHLAR_LAUNCHER_RUN_UNDER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hollow/serve/counter.h"
#include "launcher/names_flags.h"

namespace ashlar::cli {

inline constexpr char kUsualHistory[] = "ashlar-history";  // what a history is called where -o does not say

struct UnderFlags {
  const char* command = "";
  std::vector<std::string> program = {};
  bool records = false;
  bool serves = false;
  std::optional<std::uint64_t> history = std::nullopt;  // events that PyTorch keeps
  NamesFlags names = {};
  std::string output = {};                         // of the history
  std::optional<std::string> conf = std::nullopt;  // settings of what serves
};

// The exit code: the program's own, but for what it could not know of.
int RunUnder(const UnderFlags& flags);

// What libashlar_serve.so did in the processes of a run, as its files say (hollow/serve/counter.h).
//
//   std::vector<ServedProcess> served = ReadServed(folder);
//   Say(ToText(served));
struct ServedProcess {
  std::string process;  // its number
  serve::ServedCounts counts;
};

// By process. Files that hold no such counts, and processes that asked for nothing, are left out.
std::vector<ServedProcess> ReadServed(const std::string& folder);

// A line a process; where there is none, a line that says so.
std::string ToText(const std::vector<ServedProcess>& served);

}  // namespace ashlar::cli

#endif  // ASHLAR_LAUNCHER_RUN_UNDER_H_
