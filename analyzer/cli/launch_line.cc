#include "analyzer/cli/launch_line.h"

#include <cstring>

#include "absl/strings/str_cat.h"

namespace ashlar::cli {

bool StartsProgram(absl::string_view command) {
  return command == "dry-run" || command == "record" || command == "run-under";
}

LaunchLine SplitAtProgram(int argc, const char* const* argv) {
  LaunchLine out{argc};
  const bool starts_one = argc > 1 && StartsProgram(argv[1]);
  for (int i = 2; starts_one && i < argc; ++i) {
    if (std::strcmp(argv[i], "--") != 0) continue;
    out.program.assign(argv + i + 1, argv + argc);
    out.argc = i;
    break;
  }
  return out;
}

absl::Status NeedsProgram(const char* command, const std::vector<std::string>& program) {
  if (!program.empty() && !program.front().empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("give the program after --, as in: ashlar ", command,
                                                 " -- python train.py; see ashlar ", command, " --help"));
}

}  // namespace ashlar::cli
