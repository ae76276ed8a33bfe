#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "analyzer/cli/generate.h"

namespace ashlar::cli {
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
