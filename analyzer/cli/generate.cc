#include "analyzer/cli/generate.h"

#include "absl/strings/str_cat.h"

namespace ashlar::cli {

absl::StatusOr<std::string> Generate(const std::string& kind, const CommandDescription& program,
                                     const std::string& version) {
  if (kind == "man") return ManPage(program, version);
  if (kind == "bash") return BashCompletions(program);
  if (kind == "zsh") return ZshCompletions(program);
  if (kind == "fish") return FishCompletions(program);
  return absl::InvalidArgumentError(absl::StrCat("--generate: '", kind, "' is none of man, bash, zsh, fish"));
}

}  // namespace ashlar::cli
