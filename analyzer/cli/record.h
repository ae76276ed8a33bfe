// `ashlar record -- PROGRAM`: runs a program on its GPU and keeps the memory history of PyTorch, without an edit to it.
#ifndef ASHLAR_ANALYZER_CLI_RECORD_H_
#define ASHLAR_ANALYZER_CLI_RECORD_H_

#include <string>
#include <vector>

#include "analyzer/cli/command_line.h"

namespace ashlar::cli {

// `program`: what stands behind "--", with its arguments.
void AddRecord(CommandLine& line, std::vector<std::string> program);

}  // namespace ashlar::cli

#endif  // ASHLAR_ANALYZER_CLI_RECORD_H_
