#include "analyzer/readers/oom/oom_message_text.h"

#include <array>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "analyzer/readers/oom/oom_message_prefix.h"

namespace ashlar::readers::oom {
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
      if (text[at] == '.' && !after_point && at + 1 < text.size() && IsDigit(text[at + 1])) {
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

void StoreFigure(OomMessage& message, std::optional<Figure>& slot, const Figure& figure, absl::string_view name) {
  if (figure.low_bytes < kImpossibleBytes) {
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

}  // namespace ashlar::readers::oom
