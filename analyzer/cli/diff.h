// `ashlar diff A B`: what grew between two recordings.
#ifndef ASHLAR_ANALYZER_CLI_DIFF_H_
#define ASHLAR_ANALYZER_CLI_DIFF_H_

#include "analyzer/cli/command_line.h"

namespace ashlar::cli {

void AddDiff(CommandLine& line);

}  // namespace ashlar::cli

#endif  // ASHLAR_ANALYZER_CLI_DIFF_H_
