#include "analyzer/cli/named_input.h"

#include <unistd.h>

#include <cstdio>

#include "analyzer/report/printable.h"

namespace ashlar::cli {

readers::OpenRules RulesOf(const std::string& path) {
  readers::OpenRules out;
  out.on_quiet = [name = path == "-" ? "standard input" : report::Printable(path)] {
    std::fprintf(stderr, "%sashlar: %s: nothing has come from this pipe yet: waiting for its writer\n",
                 isatty(STDERR_FILENO) == 1 ? "\r\033[K" : "", name.c_str());
  };
  return out;
}

absl::StatusOr<std::string> ReadSmallInput(const std::string& path, std::uint64_t max_bytes) {
  readers::OpenRules rules = RulesOf(path);
  rules.max_bytes = max_bytes;
  return readers::ReadInput(path, rules);
}

}  // namespace ashlar::cli
