#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "analyzer/cli/generate.h"

namespace ashlar::cli {
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

}  // namespace ashlar::cli
