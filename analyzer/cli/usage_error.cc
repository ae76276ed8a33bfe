#include "analyzer/cli/usage_error.h"

#include <functional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace ashlar::cli {
namespace {

// The innermost command that was named, and what led there: "ashlar run".
struct Named {
  const CLI::App* app;
  std::string path;
  int words = 0;
};

Named NamedCommand(const CLI::App& program) {
  Named out{&program, program.get_name()};
  while (!out.app->get_subcommands().empty()) {
    out.app = out.app->get_subcommands().front();
    absl::StrAppend(&out.path, " ", out.app->get_name());
    ++out.words;
  }
  return out;
}

// "Could not convert: --device = x", as CLI11 says it.
std::string WrongValue(const CLI::App& app, const std::string& message) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(absl::StripPrefix(message, "Could not convert: "), absl::MaxSplits(" = ", 1));
  const CLI::Option* option = app.get_option_no_throw(std::string(parts.first));
  if (option == nullptr) return message;
  const bool is_whole = option->get_type_name() != "FLOAT";
  return absl::StrCat(parts.first, ": '", parts.second, "' is not a ", is_whole ? "whole number" : "number");
}

}  // namespace

std::optional<std::string> WrongCommand(const CLI::App& program, int argc, const char* const* argv) {
  const Named named = NamedCommand(program);
  std::vector<std::string> known;
  const std::function<bool(const CLI::App*)> every;
  for (const CLI::App* app : named.app->get_subcommands(every)) known.push_back(app->get_name());
  if (known.empty()) return std::nullopt;
  std::string what = "a command is missing";
  for (int i = named.words + 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool is_flag = !word.empty() && word.front() == '-';
    if (is_flag && named.app->get_option_no_throw(word) != nullptr) continue;
    what = absl::StrCat("there is no ", is_flag ? "flag" : "command", " '", word, "'");
    break;
  }
  return absl::StrCat(what, ": give one of ", absl::StrJoin(known, ", "), "; see ", named.path, " --help");
}

std::string UsageError(const CLI::App& program, const CLI::ParseError& error, int argc, const char* const* argv) {
  if (std::optional<std::string> wrong = WrongCommand(program, argc, argv); wrong.has_value()) return *wrong;
  const Named named = NamedCommand(program);
  std::string what = error.what();
  if (error.get_name() == "ConversionError") what = WrongValue(*named.app, what);
  return absl::StrCat(what, "; see ", named.path, " --help");
}

}  // namespace ashlar::cli
