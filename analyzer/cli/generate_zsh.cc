#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "analyzer/cli/generate.h"

namespace ashlar::cli {
namespace {

// In single quotes, within the brackets or behind the colons of a specification of _arguments.
std::string ZshEscaped(const std::string& text) {
  return absl::StrReplaceAll(text,
                             {{"'", "'\\''"}, {"[", "\\["}, {"]", "\\]"}, {":", "\\:"}, {"`", "\\`"}, {"$", "\\$"}});
}

std::string ZshFunction(const CommandDescription& command) {
  return absl::StrCat("_", absl::StrReplaceAll(command.path, {{" ", "_"}, {"-", "_"}}));
}

std::string ZshValue(const FlagDescription& flag) {
  if (flag.value.empty()) return "";
  const std::string action = flag.choices.empty() ? "_files" : absl::StrCat("(", absl::StrJoin(flag.choices, " "), ")");
  return absl::StrCat(flag.may_stand_alone ? "::" : ":", flag.value, ":", action);
}

void AddZshFlag(const FlagDescription& flag, std::vector<std::string>& out) {
  if (flag.is_positional) {
    out.push_back(absl::StrCat("'", flag.is_list ? "*" : "", ":", flag.names.front(), ":_files'"));
    return;
  }
  for (const std::string& name : flag.names) {
    const bool is_long_with_value = !flag.value.empty() && name.size() > 2;
    out.push_back(absl::StrCat("'", flag.is_list ? "*" : "", name, is_long_with_value ? "=[" : "[",
                               ZshEscaped(flag.help), "]", ZshValue(flag), "'"));
  }
}

// A command of commands gives the rest of the line to the function of the one that is named.
void AddZshCommands(const CommandDescription& command, std::vector<std::string>& arguments, std::string& after) {
  std::vector<std::string> names;
  absl::StrAppend(&after, "  case $state in\n    rest)\n      case $line[1] in\n");
  for (const CommandDescription& below : command.commands) {
    names.push_back(
        absl::StrCat(below.name, "\\:\"", absl::StrReplaceAll(ZshEscaped(below.summary), {{"\"", "\\\""}}), "\""));
    absl::StrAppend(&after, "        ", below.name, ") ", ZshFunction(below), " ;;\n");
  }
  absl::StrAppend(&after, "      esac ;;\n  esac\n");
  arguments.push_back(absl::StrCat("'1:command:((", absl::StrJoin(names, " "), "))'"));
  arguments.push_back("'*::argument:->rest'");
}

std::string ZshDefinition(const CommandDescription& command) {
  std::vector<std::string> arguments;
  std::string after;
  for (const FlagDescription& flag : command.flags) AddZshFlag(flag, arguments);
  if (!command.commands.empty()) AddZshCommands(command, arguments, after);
  if (command.takes_program) arguments.push_back("'*::program:_normal'");
  return absl::StrCat(ZshFunction(command), "() {\n  local curcontext=$curcontext state state_descr line\n",
                      "  typeset -A opt_args\n  _arguments ", command.takes_program ? "" : "-C ", "\\\n    ",
                      absl::StrJoin(arguments, " \\\n    "), "\n", after, "}\n\n");
}

}  // namespace

std::string ZshCompletions(const CommandDescription& program) {
  std::string out = "#compdef ashlar ashlar-gpu\n# zsh completions of ashlar, made by `ashlar --generate zsh`.\n\n";
  for (const CommandDescription* command : EveryCommand(program)) absl::StrAppend(&out, ZshDefinition(*command));
  return absl::StrCat(out, "_ashlar \"$@\"\n");
}

}  // namespace ashlar::cli
