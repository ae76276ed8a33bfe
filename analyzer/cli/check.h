// `ashlar check TRACE`: holds limits against a trace, for CI; exit code 1 where one is broken.
#ifndef ASHLAR_ANALYZER_CLI_CHECK_H_
#define ASHLAR_ANALYZER_CLI_CHECK_H_

#include <functional>

#include "CLI/CLI.hpp"

namespace ashlar::cli {

// Adds the command; `run` is set to what it does when it is the one given.
void AddCheck(CLI::App& program, std::function<int()>& run);

}  // namespace ashlar::cli

#endif  // ASHLAR_ANALYZER_CLI_CHECK_H_
