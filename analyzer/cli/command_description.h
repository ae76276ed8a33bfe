// The program's commands and flags as values, as --help shows them: what man pages and shell completions are made of.
//
//   CommandDescription program = Describe(app);
//   program.commands[0].flags[1].names;   // {"-o", "--output"}
#ifndef ASHLAR_ANALYZER_CLI_COMMAND_DESCRIPTION_H_
#define ASHLAR_ANALYZER_CLI_COMMAND_DESCRIPTION_H_

#include <string>
#include <vector>

namespace CLI {
class App;
}  // namespace CLI

namespace ashlar::cli {

struct FlagDescription {
  std::vector<std::string> names;  // with their dashes, short ones first; of an argument by place its one name
  std::string help;
  std::string heading;               // of --help; "Options" unless the command says otherwise
  std::string value;                 // what its value is, such as TEXT; empty: it has none
  std::vector<std::string> choices;  // the only values, where they are named
  bool may_stand_alone = false;      // the value may be left out
  bool is_positional = false;
  bool is_required = false;
  bool is_list = false;
};

struct CommandDescription {
  std::string name;
  std::string path;  // with the commands before it: "ashlar run"
  std::string summary;
  std::string example;         // a line of the shell; empty: none
  bool takes_program = false;  // behind "--"
  std::vector<FlagDescription> flags;
  std::vector<CommandDescription> commands;
};

CommandDescription Describe(const CLI::App& app, const std::string& path_before = "");

// The command and those below it, each before its own.
std::vector<const CommandDescription*> EveryCommand(const CommandDescription& program);

// The path without the program's name: "run gpt_training"; empty of the program itself.
std::string WordsOf(const CommandDescription& command);

}  // namespace ashlar::cli

#endif  // ASHLAR_ANALYZER_CLI_COMMAND_DESCRIPTION_H_
