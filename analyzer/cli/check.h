// `ashlar check TRACE`: holds limits against a trace, for CI; exit code 1 where one is broken.
#ifndef ASHLAR_ANALYZER_CLI_CHECK_H_
#define ASHLAR_ANALYZER_CLI_CHECK_H_

#include "analyzer/cli/command_line.h"

namespace ashlar::cli {

void AddCheck(CommandLine& line);

}  // namespace ashlar::cli

#endif  // ASHLAR_ANALYZER_CLI_CHECK_H_
