// What --help prints of a command: how it is called, its arguments and flags, the commands below it, an example. As
// wide as the terminal.
//
//   Print(HelpText(Describe(app)));
#ifndef ASHLAR_CONSOLE_HELP_TEXT_H_
#define ASHLAR_CONSOLE_HELP_TEXT_H_

#include <string>

#include "console/command_line.h"

namespace ashlar::cli {

std::string HelpText(const CommandDescription& command);

// "ashlar diff [flags] a b", "ashlar dry-run [flags] [--] PROGRAM [ARGUMENT...]".
std::string UsageOf(const CommandDescription& command);

}  // namespace ashlar::cli

#endif  // ASHLAR_CONSOLE_HELP_TEXT_H_
