#include "analyzer/cli/command_description.h"

#include <functional>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace ashlar::cli {
namespace {

constexpr char kBeforeExample[] = "Example:\n  ";

// "TEXT:text|json|markdown": the type, and the values behind it where a rule names them.
void ReadFlagType(const std::string& type, FlagDescription& out) {
  const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(type, absl::MaxSplits(':', 1));
  out.value = std::string(parts.first);
  if (absl::StrContains(parts.second, "|")) out.choices = absl::StrSplit(parts.second, '|');
}

FlagDescription DescribeFlag(const CLI::Option& option) {
  FlagDescription out;
  for (const std::string& name : option.get_snames()) out.names.push_back(absl::StrCat("-", name));
  for (const std::string& name : option.get_lnames()) out.names.push_back(absl::StrCat("--", name));
  out.is_positional = option.get_positional();
  if (out.is_positional) out.names = {option.get_name(true, false)};
  out.help = option.get_description();
  out.heading = option.get_group();
  out.is_required = option.get_required();
  out.is_list = option.get_items_expected_max() > 1;
  if (option.get_type_size_max() > 0) ReadFlagType(option.get_type_name(), out);
  out.may_stand_alone = !out.value.empty() && option.get_items_expected_min() == 0;
  return out;
}

}  // namespace

CommandDescription Describe(const CLI::App& app, const std::string& path_before) {
  CommandDescription out;
  out.name = app.get_name();
  out.path = path_before.empty() ? out.name : absl::StrCat(path_before, " ", out.name);
  out.summary = app.get_description();
  out.example = std::string(absl::StripPrefix(app.get_footer(), kBeforeExample));
  out.takes_program = absl::StrContains(out.summary, "-- PROGRAM");
  const std::function<bool(const CLI::Option*)> shown = [](const CLI::Option* o) { return !o->get_group().empty(); };
  for (const CLI::Option* option : app.get_options(shown)) out.flags.push_back(DescribeFlag(*option));
  const std::function<bool(const CLI::App*)> every = [](const CLI::App* a) { return !a->get_group().empty(); };
  for (const CLI::App* command : app.get_subcommands(every)) out.commands.push_back(Describe(*command, out.path));
  return out;
}

std::vector<const CommandDescription*> EveryCommand(const CommandDescription& program) {
  std::vector<const CommandDescription*> out = {&program};
  for (const CommandDescription& command : program.commands) {
    for (const CommandDescription* below : EveryCommand(command)) out.push_back(below);
  }
  return out;
}

std::string WordsOf(const CommandDescription& command) {
  const size_t space = command.path.find(' ');
  return space == std::string::npos ? "" : command.path.substr(space + 1);
}

}  // namespace ashlar::cli
