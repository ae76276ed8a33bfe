// `ashlar run-under -- PROGRAM`: runs a program that was built without us, with libraries of ours under it: --record
// keeps the history of its device memory, --serve serves that memory from a cache.
#ifndef ASHLAR_ANALYZER_CLI_RUN_UNDER_H_
#define ASHLAR_ANALYZER_CLI_RUN_UNDER_H_

#include <string>
#include <vector>

#include "analyzer/cli/command_line.h"

namespace ashlar::cli {

// `program`: what stands behind "--", with its arguments.
void AddRunUnder(CommandLine& line, std::vector<std::string> program);

}  // namespace ashlar::cli

#endif  // ASHLAR_ANALYZER_CLI_RUN_UNDER_H_
