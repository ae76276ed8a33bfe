#include "console/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "commands/shared/layout.h"

namespace ashlar::cli {
namespace {

std::optional<std::size_t> ColumnsSaid() {
  const char* said = std::getenv("COLUMNS");
  std::size_t columns = 0;
  const bool is_number = said != nullptr && absl::SimpleAtoi(said, &columns) && columns > 0;
  return is_number ? std::optional(columns) : std::nullopt;
}

std::optional<std::size_t> ColumnsOfStdout() {
  winsize size{};
  const bool is_known = isatty(STDOUT_FILENO) == 1 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return is_known ? std::optional<std::size_t>(size.ws_col) : std::nullopt;
}

std::string& ColorWish() {
  static auto& wish = *new std::string("auto");
  return wish;
}

bool IsSet(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

bool WantsColor() {
  if (ColorWish() != "auto") return ColorWish() == "always";
  if (IsSet("FORCE_COLOR") || IsSet("CLICOLOR_FORCE")) return !IsSet("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  const bool is_dumb = terminal == nullptr || absl::string_view(terminal) == "dumb";
  return isatty(STDOUT_FILENO) == 1 && !is_dumb && !IsSet("NO_COLOR");
}

constexpr absl::string_view kBold = "\033[1m";
constexpr absl::string_view kBoldRed = "\033[1;31m";
constexpr absl::string_view kGreen = "\033[32m";
constexpr absl::string_view kPlain = "\033[0m";

// A report's titles are in capitals at the beginning of a line; two blanks or a bracket end them.
std::size_t TitleLength(absl::string_view line) {
  std::size_t capitals = 0;
  while (capitals < line.size() && absl::ascii_isupper(static_cast<unsigned char>(line[capitals]))) ++capitals;
  const bool is_title = capitals >= 3 && (capitals == line.size() || line[capitals] == ' ');
  return is_title ? std::min(line.find("  "), line.size()) : 0;
}

void AppendColored(absl::string_view line, std::string& out) {
  const std::size_t length = TitleLength(line);
  if (length == 0) {
    absl::StrAppend(&out, line);
    return;
  }
  const absl::string_view title = line.substr(0, length);
  const bool is_failure = absl::StartsWith(title, "OUT OF MEMORY");
  const bool is_answer = title == "VERDICT" || title == "FIX" || title == "TRY FIRST";
  absl::StrAppend(&out, is_failure ? kBoldRed : kBold, title, kPlain, is_answer ? kGreen : "", line.substr(length),
                  is_answer ? kPlain : "");
}

}  // namespace

void AddColorFlag(Command& app) {
  app.Add("--color", ColorWish(), "colour in the text: auto (a terminal, without NO_COLOR), always, never")
      .OneOf({"auto", "always", "never"});
}

std::string Colored(const std::string& text) {
  if (!WantsColor()) return text;
  std::string out;
  bool is_first = true;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!is_first) out += "\n";
    AppendColored(line, out);
    is_first = false;
  }
  return out;
}

std::string FirstScreen(const std::string& text) {
  constexpr std::size_t kFirstLines = 20;
  if (isatty(STDOUT_FILENO) != 1) return text;
  std::size_t end = 0;
  for (std::size_t line = 0; line < kFirstLines; ++line) {
    const std::size_t newline = text.find('\n', end);
    if (newline == std::string::npos) return text;
    end = newline + 1;
  }
  // A title without what stands under it is left to the rest.
  const std::size_t section = text.rfind("\n\n", end - 1);
  if (section != std::string::npos && std::count(text.begin() + section + 2, text.begin() + end, '\n') < 3) {
    end = section + 1;
  }
  const auto left = std::count(text.begin() + static_cast<std::ptrdiff_t>(end), text.end(), '\n');
  if (left < 3) return text;
  return absl::StrCat(text.substr(0, end), "(", left, " more lines: --all)\n");
}

void FollowTerminal() {
  const std::optional<std::size_t> said = ColumnsSaid();
  report::SetTextWidth(said.has_value() ? said : ColumnsOfStdout());
}

}  // namespace ashlar::cli
