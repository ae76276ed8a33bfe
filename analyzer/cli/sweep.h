// `ashlar sweep TRACE...`: settings side by side, best first, and the one line to paste.
#ifndef ASHLAR_ANALYZER_CLI_SWEEP_H_
#define ASHLAR_ANALYZER_CLI_SWEEP_H_

#include "analyzer/cli/command_line.h"

namespace ashlar::cli {

void AddSweep(CommandLine& line);

}  // namespace ashlar::cli

#endif  // ASHLAR_ANALYZER_CLI_SWEEP_H_
