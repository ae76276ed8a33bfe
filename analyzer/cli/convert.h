// `ashlar convert IN OUT`: a recording, snapshot, trace or packing problem in another format.
#ifndef ASHLAR_ANALYZER_CLI_CONVERT_H_
#define ASHLAR_ANALYZER_CLI_CONVERT_H_

#include "analyzer/cli/command_line.h"

namespace ashlar::cli {

void AddConvert(CommandLine& line);

}  // namespace ashlar::cli

#endif  // ASHLAR_ANALYZER_CLI_CONVERT_H_
