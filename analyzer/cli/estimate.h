// `ashlar estimate MODEL.json`: the memory of a training or inference run before it starts.
#ifndef ASHLAR_ANALYZER_CLI_ESTIMATE_H_
#define ASHLAR_ANALYZER_CLI_ESTIMATE_H_

#include "analyzer/cli/command_line.h"

namespace ashlar::cli {

void AddEstimate(CommandLine& line);

}  // namespace ashlar::cli

#endif  // ASHLAR_ANALYZER_CLI_ESTIMATE_H_
