// `ashlar fleet DIR|GLOB|FILE...`: the ranks of one job together, read by one process or by many.
#ifndef ASHLAR_ANALYZER_CLI_FLEET_H_
#define ASHLAR_ANALYZER_CLI_FLEET_H_

#include "analyzer/cli/command_line.h"

namespace ashlar::cli {

void AddFleet(CommandLine& line);

}  // namespace ashlar::cli

#endif  // ASHLAR_ANALYZER_CLI_FLEET_H_
