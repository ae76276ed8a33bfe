// `ashlar explain FILE|-`: what happened to the memory, and what would have helped.
#ifndef ASHLAR_ANALYZER_CLI_EXPLAIN_H_
#define ASHLAR_ANALYZER_CLI_EXPLAIN_H_

#include "analyzer/cli/command_line.h"

namespace ashlar::cli {

void AddExplain(CommandLine& line);

}  // namespace ashlar::cli

#endif  // ASHLAR_ANALYZER_CLI_EXPLAIN_H_
