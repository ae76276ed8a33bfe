#include "analyzer/formats/oom/oom_parser.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"

namespace ashlar::formats::oom {
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

// "Jun 01 10:22:33 host trainer[123]:" (syslog, journald).
std::size_t Syslog(absl::string_view line) {
  constexpr absl::string_view kMonths = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec ";
  if (line.size() < 16 || line[3] != ' ' || !absl::StrContains(kMonths, line.substr(0, 4))) return 0;
  const std::size_t close = line.find("]: ");
  const std::size_t open = line.substr(0, close).rfind('[');
  if (close == absl::string_view::npos || open == absl::string_view::npos || open < 16) return 0;
  return Time(line.substr(7)) > 0 ? close + 2 : 0;
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
  for (const auto piece : {Bracketed, Parenthesised, Time, Level, Place, Syslog, Service, BoxSide}) {
    if (const std::size_t length = piece(line); length > 0) return length;
  }
  return 0;
}

namespace {

__extension__ using Wide = unsigned __int128;

// Length of what to leave out at `at`: white space, "\n" written out, a no-break space, a colour sequence; else 0.
std::size_t BlankLength(absl::string_view raw, std::size_t at) {
  if (IsBlank(raw[at])) return 1;
  if (at + 1 >= raw.size()) return 0;
  if (raw[at] == '\\' && (raw[at + 1] == 'n' || raw[at + 1] == 'r' || raw[at + 1] == 't')) return 2;
  if (raw[at] == '\xC2' && raw[at + 1] == '\xA0') return 2;
  if (raw[at] != '\x1B' || raw[at + 1] != '[') return 0;
  std::size_t end = at + 2;
  while (end < raw.size() && end < at + 16 && (IsDigit(raw[end]) || raw[end] == ';')) ++end;
  return end < raw.size() && absl::ascii_isalpha(static_cast<unsigned char>(raw[end])) ? end + 1 - at : 0;
}

bool IsLinePrefix(char c) { return c == '#' || c == '>' || c == '|' || c == '*'; }

struct Unit {
  const char* name;
  std::uint64_t bytes;
};
// Longer names first. Powers of two throughout, as all these programs divide by 1024.
constexpr std::array<Unit, 18> kUnits = {{{"bytes", 1},
                                          {"Bytes", 1},
                                          {"byte", 1},
                                          {"PiB", kGiB << 20},
                                          {"TiB", kGiB << 10},
                                          {"GiB", kGiB},
                                          {"MiB", kMiB},
                                          {"KiB", kKiB},
                                          {"TB", kGiB << 10},
                                          {"GB", kGiB},
                                          {"MB", kMiB},
                                          {"KB", kKiB},
                                          {"kB", kKiB},
                                          {"B", 1},
                                          {"T", kGiB << 10},
                                          {"G", kGiB},
                                          {"M", kMiB},
                                          {"K", kKiB}}};

struct Number {
  std::uint64_t digits = 0;  // without the point
  std::uint64_t scale = 1;   // 10^decimals
  bool too_large = false;
  std::size_t length = 0;
};

bool IsThousandsComma(absl::string_view text, std::size_t at) {
  if (text[at] != ',' || at + 3 >= text.size()) return false;
  for (std::size_t i = 1; i <= 3; ++i) {
    if (!IsDigit(text[at + i])) return false;
  }
  return at + 4 >= text.size() || !IsDigit(text[at + 4]);
}

Number ReadNumber(absl::string_view text) {
  Number number;
  std::size_t at = 0;
  bool after_point = false;
  for (; at < text.size(); ++at) {
    if (!IsDigit(text[at])) {
      if (at == 0) break;
      // "1.50 GiB"; NumPy prints "184. MiB".
      const bool has_fraction = at + 1 < text.size() && IsDigit(text[at + 1]);
      const bool is_before_unit = at + 2 < text.size() && text[at + 2] == 'i';
      if (text[at] == '.' && !after_point && (has_fraction || is_before_unit)) {
        after_point = true;
        continue;
      }
      if (!after_point && IsThousandsComma(text, at)) continue;
      break;
    }
    if (number.digits >= 100'000'000'000'000'000u) {  // further decimals say nothing; further digits are no memory
      number.too_large = number.too_large || !after_point;
      continue;
    }
    number.digits = number.digits * 10 + static_cast<std::uint64_t>(text[at] - '0');
    if (after_point) number.scale *= 10;
  }
  number.length = at;
  return number;
}

std::uint64_t Saturate(Wide value) { return value > UINT64_MAX ? UINT64_MAX : static_cast<std::uint64_t>(value); }

Figure MakeFigure(const Number& number, std::uint64_t unit_bytes) {
  Figure figure;
  if (number.too_large) {
    figure.low_bytes = figure.high_bytes = UINT64_MAX;
    return figure;
  }
  if (unit_bytes == 1 && number.scale == 1) {
    figure.low_bytes = figure.high_bytes = number.digits;
    return figure;
  }
  const Wide twice = Wide{number.digits} * 2;
  const Wide divisor = Wide{number.scale} * 2;
  figure.low_bytes = number.digits == 0 ? 0 : Saturate(((twice - 1) * unit_bytes + divisor - 1) / divisor);
  figure.high_bytes = Saturate((twice + 1) * unit_bytes / divisor);
  // Printed finer than a byte: the two whole bytes around it.
  if (figure.low_bytes > figure.high_bytes) std::swap(figure.low_bytes, figure.high_bytes);
  return figure;
}

}  // namespace

SqueezedText::SqueezedText(absl::string_view raw, std::size_t base) : raw_(raw), base_(base) {
  squeezed_.reserve(raw.size());
  offsets_.reserve(raw.size());
  bool line_start = base == 0;
  bool dropped = false;
  for (std::size_t at = 0; at < raw.size();) {
    if (const std::size_t blank = BlankLength(raw, at); blank > 0) {
      line_start = line_start || raw[at] == '\n' || (raw[at] == '\\' && raw[at + 1] == 'n');
      dropped = true;
      at += blank;
      continue;
    }
    if (line_start && IsLinePrefix(raw[at])) {
      ++at;
      continue;
    }
    if (const std::size_t prefix = line_start ? LinePrefixLength(raw.substr(at)) : 0; prefix > 0) {
      dropped = true;
      at += prefix;
      continue;
    }
    if (dropped && !squeezed_.empty() && IsDigit(squeezed_.back()) && IsDigit(raw[at])) {
      squeezed_.push_back(' ');
      offsets_.push_back(static_cast<std::uint32_t>(at));
    }
    squeezed_.push_back(raw[at]);
    offsets_.push_back(static_cast<std::uint32_t>(at));
    line_start = dropped = false;
    ++at;
  }
}

std::string SqueezedText::Raw(std::size_t begin, std::size_t end) const {
  std::string out;
  if (begin >= end || end > offsets_.size()) return out;
  for (std::size_t i = begin; i < end; ++i) {
    const bool follows_a_gap = i > begin && offsets_[i] > offsets_[i - 1] + 1;
    if (follows_a_gap && out.back() != ' ' && squeezed_[i] != ' ') out.push_back(' ');
    out.push_back(squeezed_[i]);
  }
  return out;
}

bool Cursor::EndsInside(absl::string_view literal) const {
  return Rest().size() < literal.size() && literal.substr(0, Rest().size()) == Rest();
}

bool Cursor::Take(absl::string_view literal) {
  if (!Sees(literal)) return false;
  at_ += literal.size();
  return true;
}

bool Cursor::SkipPast(absl::string_view literal, std::size_t reach) {
  const std::size_t found = Rest().substr(0, reach + literal.size()).find(literal);
  if (found == absl::string_view::npos) return false;
  at_ += found + literal.size();
  return true;
}

bool Cursor::InsideNumber() const {
  if (at_ == 0 || AtEnd() || !IsDigit(text_->text()[at_])) return false;
  const char before = text_->text()[at_ - 1];
  return IsDigit(before) || ((before == '.' || before == ',') && at_ >= 2 && IsDigit(text_->text()[at_ - 2]));
}

std::optional<std::int64_t> Cursor::TakeInteger() {
  std::int64_t value = 0;
  std::size_t length = 0;
  const absl::string_view rest = Rest();
  for (; length < rest.size() && IsDigit(rest[length]); ++length) {
    if (length >= 18) return std::nullopt;
    value = value * 10 + (rest[length] - '0');
  }
  if (length == 0) return std::nullopt;
  at_ += length;
  return value;
}

std::optional<Figure> Cursor::TakeFigure(bool unit_optional) {
  const absl::string_view rest = Rest();
  const Number number = ReadNumber(rest);
  if (number.length == 0) return std::nullopt;
  std::size_t length = number.length;
  std::uint64_t unit_bytes = 0;
  for (const Unit& unit : kUnits) {
    if (absl::StartsWith(rest.substr(number.length), unit.name)) {
      unit_bytes = unit.bytes;
      length += absl::string_view(unit.name).size();
      break;
    }
  }
  if (unit_bytes == 0) {
    if (!unit_optional || number.scale != 1) return std::nullopt;
    unit_bytes = 1;
  }
  Figure figure = MakeFigure(number, unit_bytes);
  figure.printed = text_->Raw(at_, at_ + length);
  at_ += length;
  return figure;
}

bool IsQuotedAt(const SqueezedText& text, std::size_t at) {
  const char before = at > 0 ? text.text()[at - 1] : ' ';
  return before == '"' || before == '\'' || before == '`' || before == '_' || before == '.';
}

void StoreFigure(OomMessage& message, std::optional<Figure>& slot, const Figure& figure, absl::string_view name) {
  if (figure.low_bytes < (&slot == &message.tried ? kImpossibleBytes : kMostHeldBytes)) {
    if (!slot) slot = figure;
    return;
  }
  message.AddNote("impossible_figure", absl::StrCat(figure.printed, " (", name,
                                                    ") cannot be memory: a wrapped counter or \"not available\"; it "
                                                    "is left out"));
}

bool TakeFigureAfter(Cursor& cursor, absl::string_view words, std::size_t reach, OomMessage& message,
                     std::optional<Figure>& slot, bool unit_optional) {
  Cursor look = cursor;
  if (!look.SkipPast(words, reach)) return false;
  const std::optional<Figure> figure = look.TakeFigure(unit_optional);
  if (!figure) return false;
  StoreFigure(message, slot, *figure, words);
  cursor = look;
  return true;
}

}  // namespace ashlar::formats::oom
