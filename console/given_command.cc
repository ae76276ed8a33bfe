#include "console/given_command.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"

namespace ashlar::cli {
namespace {

struct Kept {
  std::vector<std::string> words = {};
  std::vector<std::string> program = {};
};

Kept& KeptCommand() {
  static Kept kept;
  return kept;
}

bool IsPlain(char letter) {
  return absl::ascii_isalnum(static_cast<unsigned char>(letter)) || absl::StrContains("_@%+=:,./-", letter);
}

// A file that is there, or one that is written beside what is there.
bool IsFile(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::exists(path, error) || std::filesystem::is_directory(path.parent_path(), error);
}

// "--report=/a/page.html" without the folder, and the other words of a command as they are.
std::string WithoutFolder(const std::string& word) {
  const std::size_t sign = absl::StartsWith(word, "--") ? word.find('=') : std::string::npos;
  const std::size_t begin = sign == std::string::npos ? 0 : sign + 1;
  std::string value = word.substr(begin);
  while (value.size() > 1 && value.back() == '/') value.pop_back();
  const std::size_t slash = value.rfind('/');
  if (slash == std::string::npos || slash + 1 == value.size() || !IsFile(value)) return word;
  return absl::StrCat(word.substr(0, begin), value.substr(slash + 1));
}

}  // namespace

void KeepCommand(int argc, const char* const* argv, const std::vector<std::string>& program) {
  KeptCommand() = {{argv + std::min(argc, 1), argv + argc}, program};
}

void KeepAsProgram(const std::vector<std::string>& program) {
  std::vector<std::string>& words = KeptCommand().words;
  const std::size_t behind = KeptCommand().program.empty() ? 0 : KeptCommand().program.size() + 1;  // "--" too
  words.resize(words.size() - std::min(words.size(), program.size() - std::min(program.size(), behind)));
  KeptCommand().program = program;
}

std::string GivenCommand() {
  const auto& [words, program] = KeptCommand();
  if (words.empty()) return "";
  std::string out = "ashlar";
  for (const std::string& word : words) absl::StrAppend(&out, " ", ShellWord(WithoutFolder(word)));
  if (!program.empty()) absl::StrAppend(&out, " --");
  for (const std::string& word : program) absl::StrAppend(&out, " ", ShellWord(word));
  return out;
}

std::string ShellWord(const std::string& word) {
  if (!word.empty() && std::all_of(word.begin(), word.end(), IsPlain)) return word;
  return absl::StrCat("'", absl::StrReplaceAll(word, {{"'", R"('\'')"}}), "'");
}

bool StartsProgram(absl::string_view command) {
  return command == "dry-run" || command == "fit" || command == "record" || command == "run-under";
}

LaunchLine SplitAtProgram(int argc, const char* const* argv) {
  LaunchLine out{argc};
  const bool starts_one = argc > 1 && StartsProgram(argv[1]);
  for (int i = 2; starts_one && i < argc; ++i) {
    if (std::strcmp(argv[i], "--") != 0) continue;
    out.program.assign(argv + i + 1, argv + argc);
    out.argc = i;
    break;
  }
  return out;
}

absl::Status NeedsProgram(const char* command, const std::vector<std::string>& program) {
  if (!program.empty() && !program.front().empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("give the program, as in: ashlar ", command, " python train.py; see ashlar ", command, " --help"));
}

}  // namespace ashlar::cli
