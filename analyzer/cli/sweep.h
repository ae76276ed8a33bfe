// `ashlar sweep TRACE...`: settings side by side, best first, and the one line to paste.
#ifndef ASHLAR_ANALYZER_CLI_SWEEP_H_
#define ASHLAR_ANALYZER_CLI_SWEEP_H_

#include <functional>

#include "CLI/CLI.hpp"

namespace ashlar::cli {

// Adds the command; `run` is set to what it does when it is the one given.
void AddSweep(CLI::App& program, std::function<int()>& run);

}  // namespace ashlar::cli

#endif  // ASHLAR_ANALYZER_CLI_SWEEP_H_
