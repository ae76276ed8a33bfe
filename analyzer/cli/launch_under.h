// Runs a program, unchanged, with libraries of ours under it: one that writes down its calls on device memory, one that
// serves them. `ashlar record` and `ashlar run-under` are this.
//
//   UnderFlags flags = {.command = "record", .program = {"./simulate"}, .records = true};
//   return RunUnder(flags);                             // the program's own exit code
#ifndef ASHLAR_ANALYZER_CLI_LAUNCH_UNDER_H_
#define ASHLAR_ANALYZER_CLI_LAUNCH_UNDER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ashlar::cli {

inline constexpr char kUsualHistory[] = "ashlar-history";  // what a history is called where -o does not say

struct UnderFlags {
  const char* command = "";
  std::vector<std::string> program = {};
  bool records = false;
  bool serves = false;
  std::optional<std::uint64_t> history = std::nullopt;  // events that PyTorch keeps
  std::string output = {};                              // of the history
  std::optional<std::string> conf = std::nullopt;       // settings of what serves
};

// The exit code: the program's own, but for what it could not know of.
int RunUnder(const UnderFlags& flags);

}  // namespace ashlar::cli

#endif  // ASHLAR_ANALYZER_CLI_LAUNCH_UNDER_H_
