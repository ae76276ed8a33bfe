// `ashlar diff A B`: what grew between two recordings.
#ifndef ASHLAR_ANALYZER_CLI_DIFF_H_
#define ASHLAR_ANALYZER_CLI_DIFF_H_

#include <functional>

#include "CLI/CLI.hpp"

namespace ashlar::cli {

// Adds the command; `run` is set to what it does when it is the one given.
void AddDiff(CLI::App& program, std::function<int()>& run);

}  // namespace ashlar::cli

#endif  // ASHLAR_ANALYZER_CLI_DIFF_H_
