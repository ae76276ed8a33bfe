#include "launcher/fit_write.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace ashlar::cli {
namespace {

constexpr char kNoPython[] =
    "--write: the launcher runs a script or a module of Python, as in: ashlar fit --device T4 --write fit.py -- python "
    "train.py";
constexpr std::array<absl::string_view, 3> kTakeAWord = {"-W", "-X", "--check-hash-based-pycs"};

// As Python reads it too.
std::string PythonText(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string PythonList(const std::vector<std::string>& words) {
  return absl::StrCat(
      "[", absl::StrJoin(words, ", ", [](std::string* out, const std::string& word) { *out += PythonText(word); }),
      "]");
}

}  // namespace

absl::StatusOr<PythonProgram> ReadPythonProgram(const std::vector<std::string>& command) {
  const std::string& first = command.front();
  if (!absl::StartsWith(first.substr(first.rfind('/') + 1), "python")) return absl::InvalidArgumentError(kNoPython);
  std::size_t at = 1;
  while (at < command.size() && absl::StartsWith(command[at], "-") && command[at] != "-m") {
    if (absl::StartsWith(command[at], "-c") || command[at] == "-") return absl::InvalidArgumentError(kNoPython);
    at += std::find(kTakeAWord.begin(), kTakeAWord.end(), command[at]) != kTakeAWord.end() ? 2 : 1;
  }
  const std::size_t words = at < command.size() && command[at] == "-m" ? 2 : 1;
  if (at + words > command.size()) return absl::InvalidArgumentError(kNoPython);
  const auto begin = command.begin() + static_cast<std::ptrdiff_t>(at);
  const auto end = begin + static_cast<std::ptrdiff_t>(words);
  return PythonProgram{{begin, end}, {end, command.end()}};
}

std::string LauncherText(const PythonProgram& program, const std::vector<std::string>& changes) {
  std::vector<std::string> words = {"--with", absl::StrJoin(changes, ",")};
  words.insert(words.end(), program.words.begin(), program.words.end());
  return absl::StrCat(
      "\"\"\"Runs a program with changes made from outside, its files untouched. Made by ashlar fit.\n\n",
      "Arguments in the place of the ones below go to the program. It needs the package ashlar-gpu.\n",
      "\"\"\"\n\nimport sys\n\nfrom ashlar_gpu.fit.__main__ import main\n\nWORDS = ", PythonList(words),
      "\nARGUMENTS = ", PythonList(program.arguments),
      "\n\nif __name__ == \"__main__\":\n    main(WORDS + (sys.argv[1:] or ARGUMENTS))\n");
}

}  // namespace ashlar::cli
