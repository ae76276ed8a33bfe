// What a package installs beside the program, made of the same description as --help:
//
//   ashlar --generate man     the man page ashlar.1
//   ashlar --generate bash    completions of a shell: also zsh, fish
#ifndef ASHLAR_CONSOLE_GENERATE_H_
#define ASHLAR_CONSOLE_GENERATE_H_

#include <string>

#include "absl/status/statusor.h"
#include "console/command_line.h"

namespace ashlar::cli {

std::string ManPage(const CommandDescription& program, const std::string& version);
std::string BashCompletions(const CommandDescription& program);
std::string ZshCompletions(const CommandDescription& program);
std::string FishCompletions(const CommandDescription& program);

// InvalidArgument where the kind is none of the four.
absl::StatusOr<std::string> Generate(const std::string& kind, const CommandDescription& program,
                                     const std::string& version);

}  // namespace ashlar::cli

#endif  // ASHLAR_CONSOLE_GENERATE_H_
