// `ashlar report`: what inputs hold as one HTML file to look at.
#ifndef ASHLAR_ANALYZER_CLI_REPORT_H_
#define ASHLAR_ANALYZER_CLI_REPORT_H_

#include "analyzer/cli/command_line.h"

namespace ashlar::cli {

void AddReport(CommandLine& line);

}  // namespace ashlar::cli

#endif  // ASHLAR_ANALYZER_CLI_REPORT_H_
