// `ashlar record -- PROGRAM`: runs a program on its GPU and keeps its memory history, without an edit to it: PyTorch's
// own, of a native program its calls on device memory.
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
