// `ashlar convert IN OUT`: a recording, snapshot, trace or packing problem in another format.
#ifndef ASHLAR_ANALYZER_CLI_CONVERT_H_
#define ASHLAR_ANALYZER_CLI_CONVERT_H_

#include <functional>

#include "CLI/CLI.hpp"

namespace ashlar::cli {

// Adds the command; `run` is set to what it does when it is the one given.
void AddConvert(CLI::App& program, std::function<int()>& run);

}  // namespace ashlar::cli

#endif  // ASHLAR_ANALYZER_CLI_CONVERT_H_
