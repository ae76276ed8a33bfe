// `ashlar tune RECORDING`: what the tuner makes of the last steps of a recording (docs/library/tuner.md).
#ifndef ASHLAR_ANALYZER_CLI_TUNE_H_
#define ASHLAR_ANALYZER_CLI_TUNE_H_

#include "analyzer/cli/command_line.h"

namespace ashlar::cli {

void AddTune(CommandLine& line);

}  // namespace ashlar::cli

#endif  // ASHLAR_ANALYZER_CLI_TUNE_H_
