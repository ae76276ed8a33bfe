// `ashlar estimate MODEL.json`: the memory of a training or inference run before it starts.
#ifndef ASHLAR_ANALYZER_CLI_ESTIMATE_H_
#define ASHLAR_ANALYZER_CLI_ESTIMATE_H_

#include <functional>

#include "CLI/CLI.hpp"

namespace ashlar::cli {

// Adds the command; `run` is set to what it does when it is the one given.
void AddEstimate(CLI::App& program, std::function<int()>& run);

}  // namespace ashlar::cli

#endif  // ASHLAR_ANALYZER_CLI_ESTIMATE_H_
