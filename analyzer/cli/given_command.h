// The command line as it was given, as a page names what made it: a line that pastes into a shell where the files lie.
//
//   KeepCommand(line.argc, argv, line.program);   // ashlar report 'dumps/my run.pickle' -o /a/page.html
//   GivenCommand();                               // ashlar report 'my run.pickle' -o page.html
//
// Files are named without their folders, so that a page that is sent on tells nothing of a machine and is the same
// wherever it was made. Words of a program that is run are left as they are. Not thread-safe.
#ifndef ASHLAR_ANALYZER_CLI_GIVEN_COMMAND_H_
#define ASHLAR_ANALYZER_CLI_GIVEN_COMMAND_H_

#include <string>
#include <vector>

namespace ashlar::cli {

// Once, before a command runs. `program`: what stood behind "--".
void KeepCommand(int argc, const char* const* argv, const std::vector<std::string>& program);
// Empty where none was kept.
std::string GivenCommand();

// In single quotes where a shell would not take the word as it is.
std::string ShellWord(const std::string& word);

}  // namespace ashlar::cli

#endif  // ASHLAR_ANALYZER_CLI_GIVEN_COMMAND_H_
