// `ashlar watch PID|FILE`: where a recorded run is now, as it goes.
#ifndef ASHLAR_ANALYZER_CLI_WATCH_H_
#define ASHLAR_ANALYZER_CLI_WATCH_H_

#include "analyzer/cli/command_line.h"

namespace ashlar::cli {

void AddWatch(CommandLine& line);

}  // namespace ashlar::cli

#endif  // ASHLAR_ANALYZER_CLI_WATCH_H_
