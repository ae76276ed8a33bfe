// `ashlar bound TRACE|CSV`: how little memory the same lifetimes need, and which setting comes closest.
#ifndef ASHLAR_ANALYZER_CLI_BOUND_H_
#define ASHLAR_ANALYZER_CLI_BOUND_H_

#include "analyzer/cli/command_line.h"

namespace ashlar::cli {

void AddBound(CommandLine& line);

}  // namespace ashlar::cli

#endif  // ASHLAR_ANALYZER_CLI_BOUND_H_
