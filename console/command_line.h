// The command line of the program: its commands, and the flags and arguments of each. What reads it (CLI11) is behind
// command_line.cc and command_line.cc alone.
//
//   CommandLine line("ashlar", "Explains GPU memory.", "1.0");
//   Command bound = line.AddCommand("bound", "how little memory a trace needs");
//   auto flags = std::make_shared<BoundFlags>();
//   bound.Add("input", flags->input, "a file, or - for stdin").Required();   // without dashes: an argument by place
//   bound.Add("--json", flags->json, "print JSON");                          // a bool: a switch
//   bound.OnRun([flags] { return RunBound(*flags); });
//   return line.Run(argc, argv);
//
// What a flag sets outlives the run. Command and Flag are cheap values that refer to the CommandLine.
#ifndef ASHLAR_CONSOLE_COMMAND_LINE_H_
#define ASHLAR_CONSOLE_COMMAND_LINE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace ashlar::cli {

class Flag {
 public:
  explicit Flag(CLI::Option* option) : option_(option) {}

  Flag Required();
  // An empty value is refused: it is a shell variable that was not set.
  Flag NotEmpty();
  // What --help calls its value: SIZE, FILE, CARD; else by its type, TEXT or N.
  Flag Takes(const std::string& what);
  // Any other value is refused with these named.
  Flag OneOf(const std::vector<std::string>& values);
  Flag Between(std::int64_t least, std::int64_t most);
  // Of a list: every value has the flag before it.
  Flag OneValueEach();
  // Of a list: the flag may stand without a value.
  Flag MayStandAlone();
  Flag Excludes(Flag other);
  // Under this heading of --help.
  Flag Under(const std::string& heading);

 private:
  CLI::Option* option_;
};

class Command {
 public:
  Command(CLI::App* app, std::function<int()>* run) : app_(app), run_(run) {}

  // Exactly one of the commands added must then be given.
  Command AddCommand(const std::string& name, const std::string& summary);
  // T: bool (a switch), std::string, int, std::int64_t, std::uint64_t, std::size_t, double, an optional of these, or
  // std::vector<std::string>. A number out of T's range, and text that is none, are usage errors.
  template <typename T>
  Flag Add(const std::string& name, T& value, const std::string& help);
  // Calls `take` with the value.
  Flag AddText(const std::string& name, const std::function<void(const std::string&)>& take, const std::string& help);

  // It starts a program: what stands behind the flags, or behind "--", and is the program's, untouched. `program` has
  // what stood behind "--".
  void TakesProgram(std::vector<std::string>& program);
  // A line of the shell, shown at the end of --help.
  void Example(const std::string& line);
  // What the program does when this command is given; the result is its exit code.
  void OnRun(std::function<int()> run);
  bool IsGiven(const std::string& flag) const;

 private:
  CLI::App* app_;
  std::function<int()>* run_;
};

class CommandLine {
 public:
  CommandLine(const std::string& name, const std::string& summary, const std::string& version);
  ~CommandLine();

  // Commands that are added from now on stand under this heading of --help.
  void Under(const std::string& heading) { heading_ = heading; }
  Command AddCommand(const std::string& name, const std::string& summary);
  // Reads the line and runs its command. Help and version go to stdout; what is wrong with the line is one line on
  // stderr, and the exit code kUsage.
  int Run(int argc, const char* const* argv);

 private:
  int RunGenerate(const std::string& kind) const;

  std::unique_ptr<CLI::App> app_;
  std::string heading_ = "Commands";
  std::function<int()> run_;
};

}  // namespace ashlar::cli

// The program's commands and flags as values, as --help shows them: what man pages and shell completions are made of.
//
//   CommandDescription program = Describe(app);
//   program.commands[0].flags[1].names;   // {"-o", "--output"}

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
  std::string path;   // with the commands before it: "ashlar run"
  std::string group;  // of --help: the heading under which it stands
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

#endif  // ASHLAR_CONSOLE_COMMAND_LINE_H_
