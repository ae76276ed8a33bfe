// `ashlar replay TRACE`: replays a request trace or a snapshot under one setting.
#ifndef ASHLAR_ANALYZER_CLI_REPLAY_H_
#define ASHLAR_ANALYZER_CLI_REPLAY_H_

#include <functional>

#include "CLI/CLI.hpp"

namespace ashlar::cli {

// Adds the command; `run` is set to what it does when it is the one given.
void AddReplay(CLI::App& program, std::function<int()>& run);

}  // namespace ashlar::cli

#endif  // ASHLAR_ANALYZER_CLI_REPLAY_H_
