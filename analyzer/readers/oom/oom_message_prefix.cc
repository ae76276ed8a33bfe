#include "analyzer/readers/oom/oom_message_prefix.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "analyzer/readers/oom/oom_message_text.h"

namespace ashlar::readers::oom {
namespace {

constexpr std::size_t kMostPrefixBytes = 100;

bool HasLetter(absl::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return absl::ascii_isalpha(static_cast<unsigned char>(c)); });
}

// Up to the first blank.
absl::string_view Word(absl::string_view line) {
  return line.substr(0, static_cast<std::size_t>(std::find_if(line.begin(), line.end(), IsBlank) - line.begin()));
}

// "[rank0]:", "[2024-06-13 10:22:33]", "[1,0]<stderr>:"; a shape such as [16,12] is none.
std::size_t Bracketed(absl::string_view line) {
  if (!absl::StartsWith(line, "[")) return 0;
  const std::size_t close = line.find(']');
  if (close == absl::string_view::npos) return 0;
  const absl::string_view rest = line.substr(close + 1);
  for (const absl::string_view stream : {"<stderr>:", "<stdout>:"}) {
    if (absl::StartsWith(rest, stream)) return close + 1 + stream.size();
  }
  const absl::string_view inside = line.substr(1, close - 1);
  const bool is_tag = HasLetter(inside) || absl::StrContains(inside, ":");
  if (!is_tag || absl::StrContains(inside, "[")) return 0;
  return close + 1 + (absl::StartsWith(rest, ":") ? 1 : 0);
}

// "(RayTrainWorker pid=1234, ip=10.0.0.7)", "(VllmWorker rank=1 pid=77)".
std::size_t Parenthesised(absl::string_view line) {
  if (!absl::StartsWith(line, "(")) return 0;
  const std::size_t close = line.find(')');
  if (close == absl::string_view::npos) return 0;
  const absl::string_view inside = line.substr(1, close - 1);
  for (const absl::string_view key : {"pid=", "rank=", "ip=", "Worker", "Actor"}) {
    if (absl::StrContains(inside, key)) return close + 1;
  }
  return 0;
}

// "2024-06-13", "06-13", "10:22:33,104", "2024-06-13T10:22:33.104Z", "0613/102233.104:", "3:" (srun -l). Never a plain
// number: those are the message's.
std::size_t Time(absl::string_view line) {
  const absl::string_view word = Word(line);
  if (word.empty() || !IsDigit(word[0])) return 0;
  int separators = 0;
  for (std::size_t i = 1; i < word.size(); ++i) {
    const char c = word[i];
    if (c == ':' || c == '-' || c == '/') {
      ++separators;
    } else if (!IsDigit(c) && c != '.' && c != ',' && c != '+' && c != 'T' && c != 'Z') {
      return 0;
    }
  }
  return separators > 0 ? word.size() : 0;
}

// "ERROR", "WARNING:", "E0613" (glog).
std::size_t Level(absl::string_view line) {
  const absl::string_view word = Word(line);
  const absl::string_view name = absl::StripAsciiWhitespace(word.substr(0, word.find(':')));
  for (const absl::string_view level : {"DEBUG", "INFO", "WARNING", "WARN", "ERROR", "CRITICAL", "FATAL", "TRACE"}) {
    if (name == level) return std::min(word.size(), level.size() + 1);  // with its colon
  }
  const bool is_glog = word.size() == 5 && absl::StrContains("EWIF", word.substr(0, 1)) &&
                       std::all_of(word.begin() + 1, word.end(), IsDigit);
  return is_glog ? word.size() : 0;
}

// "engine.py:110]", "trainer.cc:12]"; not TensorFlow's own, which tells its messages.
std::size_t Place(absl::string_view line) {
  const absl::string_view word = Word(line);
  const std::size_t colon = word.rfind(':');
  if (colon == absl::string_view::npos || !absl::EndsWith(word, "]") || colon + 2 >= word.size()) return 0;
  if (!std::all_of(word.begin() + static_cast<std::ptrdiff_t>(colon) + 1, word.end() - 1, IsDigit)) return 0;
  return absl::StrContains(word, "bfc_allocator") ? 0 : word.size();
}

// "worker-1  |" (docker compose).
std::size_t Service(absl::string_view line) {
  std::size_t at = Word(line).size();
  if (at == 0 || !HasLetter(line.substr(0, at))) return 0;
  while (at < line.size() && line[at] == ' ') ++at;
  const bool is_bar = at < line.size() && line[at] == '|' && at + 1 < line.size() && line[at + 1] == ' ';
  return is_bar ? at + 1 : 0;
}

// The sides of a box drawn around a text.
std::size_t BoxSide(absl::string_view line) {
  for (const absl::string_view side : {"│", "┃", "║"}) {
    if (absl::StartsWith(line, side)) return side.size();
  }
  return 0;
}

}  // namespace

std::size_t LinePrefixLength(absl::string_view line) {
  line = line.substr(0, std::min(kMostPrefixBytes, line.find('\n')));
  for (const auto piece : {Bracketed, Parenthesised, Time, Level, Place, Service, BoxSide}) {
    if (const std::size_t length = piece(line); length > 0) return length;
  }
  return 0;
}

}  // namespace ashlar::readers::oom
