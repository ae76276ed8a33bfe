#include "console/help_text.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "commands/shared/layout.h"

namespace ashlar::cli {
namespace {

// A name and what it is, the latter from this column on; a longer name has a line of its own.
constexpr std::size_t kColumn = 26;

void AppendEntry(const std::string& name, const std::string& what, std::string& out) {
  absl::StrAppend(&out, "  ", name);
  if (name.size() + 4 > kColumn) {
    absl::StrAppend(&out, "\n", std::string(kColumn, ' '));
  } else {
    out.append(kColumn - 2 - name.size(), ' ');
  }
  report::AppendWrapped(what, kColumn, out);
}

std::string NameOf(const FlagDescription& flag) {
  const std::string more = flag.is_list ? "..." : "";
  if (flag.is_positional) return absl::StrCat(flag.names.front(), more);
  const std::string names = absl::StrJoin(flag.names, ",");
  if (flag.value.empty()) return names;
  const std::string value = flag.choices.empty() ? flag.value : absl::StrJoin(flag.choices, "|");
  return flag.may_stand_alone ? absl::StrCat(names, " [", value, "]") : absl::StrCat(names, " ", value, more);
}

void AppendFlags(const CommandDescription& command, bool are_positional, std::string& out) {
  std::string heading;
  for (const FlagDescription& flag : command.flags) {
    if (flag.is_positional != are_positional) continue;
    const std::string its = are_positional ? "Arguments" : flag.heading == "Options" ? "Flags" : flag.heading;
    if (its != heading) absl::StrAppend(&out, "\n", its, ":\n");
    heading = its;
    AppendEntry(NameOf(flag), flag.help, out);
  }
}

// In the order in which the groups were named first.
void AppendCommands(const CommandDescription& command, std::string& out) {
  std::vector<std::string> groups;
  for (const CommandDescription& below : command.commands) {
    if (std::find(groups.begin(), groups.end(), below.group) == groups.end()) groups.push_back(below.group);
  }
  for (const std::string& group : groups) {
    absl::StrAppend(&out, "\n", group, ":\n");
    for (const CommandDescription& below : command.commands) {
      if (below.group == group) AppendEntry(below.name, below.summary, out);
    }
  }
}

}  // namespace

std::string UsageOf(const CommandDescription& command) {
  std::string out = absl::StrCat(command.path, " [flags]");
  for (const FlagDescription& flag : command.flags) {
    if (flag.is_positional) absl::StrAppend(&out, " ", NameOf(flag));
  }
  if (command.takes_program) absl::StrAppend(&out, " [--] PROGRAM [ARGUMENT...]");
  if (!command.commands.empty()) absl::StrAppend(&out, " COMMAND");
  return out;
}

std::string HelpText(const CommandDescription& command) {
  std::string out;
  report::AppendWrapped(command.summary, 0, out);
  absl::StrAppend(&out, "\nUsage: ", UsageOf(command), "\n");
  AppendCommands(command, out);
  AppendFlags(command, true, out);
  AppendFlags(command, false, out);
  if (!command.example.empty()) absl::StrAppend(&out, "\nExample:\n  ", command.example, "\n");
  if (!command.commands.empty()) absl::StrAppend(&out, "\n", command.path, " help COMMAND says more of each.\n");
  return out;
}

}  // namespace ashlar::cli
