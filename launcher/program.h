// Finds a program as a shell does, and says whether a preloaded library can reach it.
//
//   FoundProgram found = FindProgram("python", Under::kHollow);
//   if (!found.why_not.empty()) return Fail(found.exit_code, absl::InvalidArgumentError(found.why_not));
//   execve(found.path.c_str(), ...);
//
// Not served, and not started: 32-bit programs, setuid and setgid ones (the dynamic linker preloads nothing for them),
// statically linked ones; over the hollow device those that have a CUDA runtime linked in and no names of its
// functions. A script is judged by its interpreter.
#ifndef ASHLAR_LAUNCHER_PROGRAM_H_
#define ASHLAR_LAUNCHER_PROGRAM_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

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

// Reads from an ELF file how it wants to be started. Layout: elf(5), <elf.h>.
struct ElfFacts {
  bool is_64_bit = false;
  bool is_of_this_machine = false;
  bool has_interpreter = false;      // false: statically linked
  bool has_device_code = false;      // nvcc embeds it with the calls of a CUDA runtime
  bool has_own_runtime = false;      // CUDA's, linked statically
  bool has_runtime_symbols = false;  // and the names of its functions
  std::vector<std::string> needed = {};
};

// nullopt where these are not the bytes of an ELF file. What lies outside of a cut file is left out.
std::optional<ElfFacts> ReadElf(absl::string_view bytes);

}  // namespace ashlar::cli

#endif  // ASHLAR_LAUNCHER_PROGRAM_H_
