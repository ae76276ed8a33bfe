// `ashlar dry-run -- PROGRAM`: runs a program, unchanged, on a machine without a GPU, and says what memory it took.
#ifndef ASHLAR_ANALYZER_CLI_DRY_RUN_H_
#define ASHLAR_ANALYZER_CLI_DRY_RUN_H_

#include <string>
#include <vector>

#include "analyzer/cli/command_line.h"

namespace ashlar::cli {

// `program`: what stands behind "--", with its arguments.
void AddDryRun(CommandLine& line, std::vector<std::string> program);

}  // namespace ashlar::cli

#endif  // ASHLAR_ANALYZER_CLI_DRY_RUN_H_
