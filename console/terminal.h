// What the program asks of the terminal that it prints on.
#ifndef ASHLAR_CONSOLE_TERMINAL_H_
#define ASHLAR_CONSOLE_TERMINAL_H_

#include <string>

#include "console/command_line.h"

namespace ashlar::cli {

// Reports are as wide as COLUMNS says, else as the terminal on stdout, within 60 to 200 columns. Where there is
// neither, they keep their usual width: a file has the same text on every machine.
void FollowTerminal();

// --color auto|always|never. auto: on a terminal that is not "dumb", unless NO_COLOR is set to anything.
void AddColorFlag(Command& app);

// The text of a report with its headline, titles, verdict and line to paste in colour, where that is wanted.
std::string Colored(const std::string& text);

// On a terminal, the first 20 lines of a report and a line that says how to see the others.
std::string FirstScreen(const std::string& text);

}  // namespace ashlar::cli

#endif  // ASHLAR_CONSOLE_TERMINAL_H_
