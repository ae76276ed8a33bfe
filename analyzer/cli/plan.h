// `ashlar plan TRACE -o PLAN`: where the large blocks of a run go, for `plan:FILE` to follow.
#ifndef ASHLAR_ANALYZER_CLI_PLAN_H_
#define ASHLAR_ANALYZER_CLI_PLAN_H_

#include "analyzer/cli/command_line.h"

namespace ashlar::cli {

void AddPlan(CommandLine& line);

}  // namespace ashlar::cli

#endif  // ASHLAR_ANALYZER_CLI_PLAN_H_
