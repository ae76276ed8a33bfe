// `ashlar run WORKLOAD`: runs a workload through the allocator and captures it.
#ifndef ASHLAR_ANALYZER_CLI_RUN_H_
#define ASHLAR_ANALYZER_CLI_RUN_H_

#include "analyzer/cli/command_line.h"

namespace ashlar::cli {

// Adds the command, and one below it for each workload; `run` is set to what it does when it is the one given.
void AddRun(CommandLine& line);

}  // namespace ashlar::cli

#endif  // ASHLAR_ANALYZER_CLI_RUN_H_
