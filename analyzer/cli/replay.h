// `ashlar replay TRACE`: replays a request trace or a snapshot under one setting.
#ifndef ASHLAR_ANALYZER_CLI_REPLAY_H_
#define ASHLAR_ANALYZER_CLI_REPLAY_H_

#include "analyzer/cli/command_line.h"

namespace ashlar::cli {

void AddReplay(CommandLine& line);

}  // namespace ashlar::cli

#endif  // ASHLAR_ANALYZER_CLI_REPLAY_H_
