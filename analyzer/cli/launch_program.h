// Finds a program as a shell does, and says whether a preloaded library can reach it.
//
//   FoundProgram found = FindProgram("python", Under::kHollow);
//   if (!found.why_not.empty()) return Fail(found.exit_code, absl::InvalidArgumentError(found.why_not));
//   execve(found.path.c_str(), ...);
//
// Not served, and not started: 32-bit programs, setuid and setgid ones (the dynamic linker preloads nothing for them),
// statically linked ones; over the hollow device those that bring a CUDA runtime of their own. A script is judged by
// its interpreter.
#ifndef ASHLAR_ANALYZER_CLI_LAUNCH_PROGRAM_H_
#define ASHLAR_ANALYZER_CLI_LAUNCH_PROGRAM_H_

#include <string>

namespace ashlar::cli {

inline constexpr int kNotServed = 3;
inline constexpr int kNotExecutable = 126;
inline constexpr int kNotFound = 127;

struct FoundProgram {
  std::string path = {};
  std::string why_not = {};  // one line; empty: it can be started
  int exit_code = 0;         // where it cannot
};

// What must reach the program: nothing, a library that is preloaded, or the hollow device.
enum class Under { kNothing, kLibrary, kHollow };

// `name` without a slash is looked up in PATH.
FoundProgram FindProgram(const std::string& name, Under under);

}  // namespace ashlar::cli

#endif  // ASHLAR_ANALYZER_CLI_LAUNCH_PROGRAM_H_
