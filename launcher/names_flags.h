// The flags of who holds a program's memory, by its Python names: when it is looked at, how long, and what may be told.
//
//   if (absl::Status status = CheckNames(flags); !status.ok()) return Fail(kUsage, status);
//   PutNames(flags, environment);
#ifndef ASHLAR_LAUNCHER_NAMES_FLAGS_H_
#define ASHLAR_LAUNCHER_NAMES_FLAGS_H_

#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "console/command_line.h"

namespace ashlar::cli {

struct NamesFlags {
  std::optional<std::string> looks = {};  // "3s", "off", "peak", "peak,3s"
  bool redacts = false;
};

void AddNamesFlags(Command& app, NamesFlags& flags);

// InvalidArgument names the flag.
absl::Status CheckNames(const NamesFlags& flags);

// For the Python side of the program.
void PutNames(const NamesFlags& flags, std::map<std::string, std::string>& environment);

}  // namespace ashlar::cli

#endif  // ASHLAR_LAUNCHER_NAMES_FLAGS_H_
