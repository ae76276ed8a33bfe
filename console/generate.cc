#include "console/generate.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace ashlar::cli {

absl::StatusOr<std::string> Generate(const std::string& kind, const CommandDescription& program,
                                     const std::string& version) {
  if (kind == "man") return ManPage(program, version);
  if (kind == "bash") return BashCompletions(program);
  if (kind == "zsh") return ZshCompletions(program);
  if (kind == "fish") return FishCompletions(program);
  return absl::InvalidArgumentError(absl::StrCat("--generate: '", kind, "' is none of man, bash, zsh, fish"));
}

namespace {

// Text of roff: a hyphen that is to be copied is one, and no line begins a request.
std::string Roff(const std::string& text) {
  std::string out = absl::StrReplaceAll(text, {{"\\", "\\e"}, {"-", "\\-"}});
  if (!out.empty() && (out.front() == '.' || out.front() == '\'')) out.insert(0, "\\&");
  return absl::StrReplaceAll(out, {{"\n.", "\n\\&."}, {"\n'", "\n\\&'"}});
}

std::string ManValue(const FlagDescription& flag) {
  if (flag.value.empty()) return "";
  const std::string value = flag.choices.empty() ? flag.value : absl::StrJoin(flag.choices, "|");
  return absl::StrCat(flag.may_stand_alone ? " [\\fI" : " \\fI", Roff(value), flag.may_stand_alone ? "\\fR]" : "\\fR",
                      flag.is_list ? " ..." : "");
}

std::string ManEntry(const FlagDescription& flag) {
  if (flag.is_positional) {
    return absl::StrCat(".TP\n\\fI", Roff(flag.names.front()), "\\fR", flag.is_list ? " ..." : "", "\n",
                        Roff(flag.help), "\n");
  }
  const std::string names = absl::StrJoin(flag.names, ", ", [](std::string* out, const std::string& name) {
    absl::StrAppend(out, "\\fB", Roff(name), "\\fR");
  });
  return absl::StrCat(".TP\n", names, ManValue(flag), "\n", Roff(flag.help), "\n");
}

std::string ManFlags(const CommandDescription& command) {
  std::string out;
  std::string heading = "Options";
  for (const FlagDescription& flag : command.flags) {
    if (flag.heading != heading) absl::StrAppend(&out, ".PP\n", Roff(flag.heading), ":\n");
    heading = flag.heading;
    absl::StrAppend(&out, ManEntry(flag));
  }
  return out;
}

std::string ManUsage(const CommandDescription& command) {
  std::string out = absl::StrCat("\\fB", Roff(command.path), "\\fR [\\fIoptions\\fR]");
  for (const FlagDescription& flag : command.flags) {
    if (flag.is_positional)
      absl::StrAppend(&out, " \\fI", Roff(flag.names.front()), "\\fR", flag.is_list ? " ..." : "");
  }
  if (command.takes_program) absl::StrAppend(&out, " \\-\\- \\fIprogram\\fR [\\fIargument\\fR ...]");
  if (!command.commands.empty()) absl::StrAppend(&out, " \\fIcommand\\fR");
  return out;
}

std::string ManSection(const CommandDescription& command) {
  std::string out = absl::StrCat(".SS ", Roff(command.path), "\n", ManUsage(command), "\n.PP\n", Roff(command.summary),
                                 ".\n", ManFlags(command));
  if (!command.example.empty()) {
    absl::StrAppend(&out, ".PP\nExample:\n.PP\n.RS 4\n.nf\n", Roff(command.example), "\n.fi\n.RE\n");
  }
  return out;
}

}  // namespace

std::string ManPage(const CommandDescription& program, const std::string& version) {
  std::string out = absl::StrCat(".TH ", absl::AsciiStrToUpper(program.name), " 1 \"\" \"", program.name, " ", version,
                                 "\" \"User Commands\"\n.SH NAME\n", program.name, " \\- explains GPU memory\n",
                                 ".SH SYNOPSIS\n", ManUsage(program), "\n.SH DESCRIPTION\n", Roff(program.summary),
                                 "\n", ".SH OPTIONS\n", ManFlags(program), ".SH COMMANDS\n");
  for (const CommandDescription* command : EveryCommand(program)) {
    if (command != &program) absl::StrAppend(&out, ManSection(*command));
  }
  return absl::StrCat(out, ".SH EXIT STATUS\n.TP\n0\nfine\n.TP\n1\na check failed\n.TP\n2\nusage\n.TP\n3\n",
                      "an unreadable input\n.PP\nA command that starts a program ends with that program's own.\n");
}

namespace {

// What stands before the word that is completed: "path" has the commands, "previous" the word before.
constexpr char kBashBegin[] = R"(# bash completions of ashlar, made by `ashlar --generate bash`.
_ashlar() {
  local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} path="" i
  COMPREPLY=()
  if [[ $word == = ]]; then
    word=""
  elif [[ $previous == = ]]; then
    previous=${COMP_WORDS[COMP_CWORD-2]}
  fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    if [[ ${COMP_WORDS[i]} == -- ]]; then
      case $path in
        @PROGRAMS@) declare -F _command_offset >/dev/null && _command_offset $((i + 1)) ;;
      esac
      return
    fi
    case "$path ${COMP_WORDS[i]}" in
      @PATHS@) path="$path ${COMP_WORDS[i]}" ;;
    esac
  done
)";

constexpr char kBashEnd[] = R"(}
complete -o default -F _ashlar ashlar ashlar-gpu
)";

std::string BashPattern(const std::string& text) { return absl::StrCat("\"", text.empty() ? "" : " ", text, "\""); }

std::string BashFlags(const CommandDescription& command) {
  std::vector<std::string> names;
  for (const FlagDescription& flag : command.flags) {
    if (!flag.is_positional) names.insert(names.end(), flag.names.begin(), flag.names.end());
  }
  return absl::StrJoin(names, " ");
}

// A value that is named, or a file: then nothing is offered, and bash offers files.
void AddBashValues(const CommandDescription& command, std::string& out) {
  for (const FlagDescription& flag : command.flags) {
    if (flag.is_positional || flag.value.empty()) continue;
    const std::string names = absl::StrJoin(flag.names, "|", [&command](std::string* to, const std::string& name) {
      absl::StrAppend(to, BashPattern(absl::StrCat(WordsOf(command), WordsOf(command).empty() ? "" : " ", name)));
    });
    absl::StrAppend(&out, "    ", names, ")");
    if (!flag.choices.empty()) {
      absl::StrAppend(&out, " COMPREPLY=($(compgen -W \"", absl::StrJoin(flag.choices, " "), "\" -- \"$word\"));");
    }
    absl::StrAppend(&out, flag.may_stand_alone ? " [[ $word == -* ]] || return ;;\n" : " return ;;\n");
  }
}

void AddBashWords(const CommandDescription& command, std::string& out) {
  std::vector<std::string> commands;
  for (const CommandDescription& below : command.commands) commands.push_back(below.name);
  absl::StrAppend(&out, "    ", BashPattern(WordsOf(command)), ")\n      if [[ $word == -* ]]; then\n",
                  "        COMPREPLY=($(compgen -W \"", BashFlags(command), "\" -- \"$word\"))\n");
  if (!commands.empty()) {
    absl::StrAppend(&out, "      else\n        COMPREPLY=($(compgen -W \"", absl::StrJoin(commands, " "),
                    "\" -- \"$word\"))\n");
  }
  absl::StrAppend(&out, "      fi ;;\n");
}

std::string WithMark(std::string text, const std::string& mark, const std::string& with) {
  const size_t place = text.find(mark);
  return text.replace(place, mark.size(), with);
}

}  // namespace

std::string BashCompletions(const CommandDescription& program) {
  std::vector<std::string> paths;
  std::vector<std::string> with_program;
  std::string values;
  std::string words;
  for (const CommandDescription* command : EveryCommand(program)) {
    if (command != &program) paths.push_back(BashPattern(WordsOf(*command)));
    if (command->takes_program) with_program.push_back(BashPattern(WordsOf(*command)));
    AddBashValues(*command, values);
    AddBashWords(*command, words);
  }
  if (with_program.empty()) with_program.push_back("--");  // no command is called that
  const std::string begin = WithMark(WithMark(kBashBegin, "@PROGRAMS@", absl::StrJoin(with_program, "|")), "@PATHS@",
                                     absl::StrJoin(paths, "|"));
  return absl::StrCat(begin, "  case \"$path $previous\" in\n", values, "  esac\n  case $path in\n", words, "  esac\n",
                      kBashEnd);
}

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

namespace {

// Which commands the line names, before a "--".
constexpr char kFishBegin[] = R"(# fish completions of ashlar, made by `ashlar --generate fish`.
function __ashlar_is_at
    set -l path
    for word in (commandline -opc)[2..-1]
        if test "$word" = --
            return 1
        end
        if contains -- "$path $word" $__ashlar_paths
            set path "$path $word"
        end
    end
    test "$path" = "$argv[1]"
end
function __ashlar_is_behind_dashes
    contains -- -- (commandline -opc)
end
)";

std::string FishQuoted(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"'", "\\'"}}), "'");
}

std::string FishPath(const CommandDescription& command) {
  return WordsOf(command).empty() ? "" : absl::StrCat(" ", WordsOf(command));
}

std::string FishRuleAt(const CommandDescription& command) {
  return absl::StrCat("complete -c ashlar -n ", FishQuoted(absl::StrCat("__ashlar_is_at \"", FishPath(command), "\"")));
}

void AddFishFlag(const CommandDescription& command, const FlagDescription& flag, std::string& out) {
  if (flag.is_positional) return;
  absl::StrAppend(&out, FishRuleAt(command));
  for (const std::string& name : flag.names) {
    absl::StrAppend(&out, name.size() > 2 ? " -l " : " -s ", name.substr(name.size() > 2 ? 2 : 1));
  }
  if (!flag.choices.empty()) {
    absl::StrAppend(&out, " -x -a ", FishQuoted(absl::StrJoin(flag.choices, " ")));
  } else if (!flag.value.empty() && !flag.may_stand_alone) {
    absl::StrAppend(&out, " -r");
  }
  absl::StrAppend(&out, " -d ", FishQuoted(flag.help), "\n");
}

}  // namespace

std::string FishCompletions(const CommandDescription& program) {
  std::string paths;
  std::string rules;
  for (const CommandDescription* command : EveryCommand(program)) {
    if (command != &program) absl::StrAppend(&paths, " ", FishQuoted(FishPath(*command)));
    for (const CommandDescription& below : command->commands) {
      absl::StrAppend(&rules, FishRuleAt(*command), " -f -a ", below.name, " -d ", FishQuoted(below.summary), "\n");
    }
    for (const FlagDescription& flag : command->flags) AddFishFlag(*command, flag, rules);
  }
  return absl::StrCat(kFishBegin, "set -g __ashlar_paths", paths, "\n", rules,
                      "complete -c ashlar -n __ashlar_is_behind_dashes -a '(__fish_complete_command)'\n",
                      "complete -c ashlar-gpu -w ashlar\n");
}

}  // namespace ashlar::cli
