// `ashlar explain FILE|-`: what happened to the memory, and what would have helped.
#ifndef ASHLAR_ANALYZER_CLI_EXPLAIN_H_
#define ASHLAR_ANALYZER_CLI_EXPLAIN_H_

#include <functional>

#include "CLI/CLI.hpp"

namespace ashlar::cli {

// Adds the command; `run` is set to what it does when it is the one given.
void AddExplain(CLI::App& program, std::function<int()>& run);

}  // namespace ashlar::cli

#endif  // ASHLAR_ANALYZER_CLI_EXPLAIN_H_
