// `ashlar bound TRACE|CSV`: how little memory the same lifetimes need, and which setting comes closest.
#ifndef ASHLAR_ANALYZER_CLI_BOUND_H_
#define ASHLAR_ANALYZER_CLI_BOUND_H_

#include <functional>

#include "CLI/CLI.hpp"

namespace ashlar::cli {

// Adds the command; `run` is set to what it does when it is the one given.
void AddBound(CLI::App& program, std::function<int()>& run);

}  // namespace ashlar::cli

#endif  // ASHLAR_ANALYZER_CLI_BOUND_H_
