#include "commands/shared/layout.h"

#include <algorithm>
#include <atomic>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "analyzer/formats/utf8.h"

namespace ashlar::report {
namespace {

std::atomic<std::size_t> terminal_columns{0};  // 0: none was set

// What a terminal shows of UTF-8: one column for each character (all of ours are narrow).
std::size_t Columns(absl::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

void AppendBroken(absl::string_view line, std::size_t width, std::string& out) {
  const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
  const std::string further(std::min(indent + 4, width / 3), ' ');
  std::size_t column = 0;
  while (!line.empty()) {
    std::size_t end = line.find_first_not_of(' ');
    end = end == absl::string_view::npos ? line.size() : std::min(line.find(' ', end), line.size());
    absl::string_view word = line.substr(0, end);  // with the blanks before it
    if (column > indent && column + Columns(word) > width) {
      absl::StrAppend(&out, "\n", further);
      word = absl::StripLeadingAsciiWhitespace(word);
      column = further.size();
    }
    absl::StrAppend(&out, word);
    column += Columns(word);
    line.remove_prefix(end);
  }
}

}  // namespace

std::string Fitted(const std::string& text, const std::vector<std::string>& verbatim) {
  const std::size_t width = terminal_columns;
  if (width == 0) return text;
  std::string out;
  for (const absl::string_view line : absl::StrSplit(absl::StripSuffix(text, "\n"), '\n')) {
    const absl::string_view words = absl::StripLeadingAsciiWhitespace(line);
    const bool stays = Columns(line) <= width || absl::StartsWith(line, "PASTE") || absl::StartsWith(line, "FIX ") ||
                       std::find(verbatim.begin(), verbatim.end(), words) != verbatim.end();
    if (stays)
      absl::StrAppend(&out, line);
    else
      AppendBroken(line, width, out);
    out += "\n";
  }
  return out;
}

void SetTextWidth(std::optional<std::size_t> columns) {
  terminal_columns = columns.has_value() ? std::clamp(*columns, kLeastTextWidth, kMostTextWidth) : 0;
}

std::size_t TextWidth() {
  const std::size_t columns = terminal_columns;
  return columns == 0 ? kTextWidth : columns;
}

std::size_t LabelRoom(std::size_t before, std::size_t usual) {
  constexpr std::size_t kLeastRoom = 24;  // a file, a line and a function
  const std::size_t columns = terminal_columns;
  if (columns == 0) return usual;
  return columns < before + kLeastRoom ? kLeastRoom : columns - before;
}

void AppendRows(const std::vector<RowTexts>& forms, std::string& out) {
  const std::size_t width = terminal_columns;
  const auto fits = [width](const std::string& row) {
    return Columns(absl::StripTrailingAsciiWhitespace(row)) <= width;
  };
  const auto form = std::find_if(forms.begin(), forms.end() - 1, [&](const RowTexts& rows) {
    return width == 0 || std::all_of(rows.begin(), rows.end(), fits);
  });
  for (const std::string& row : *form) {
    const bool stays = width == 0 || fits(row);
    absl::StrAppend(&out, absl::StripTrailingAsciiWhitespace(stays ? row : ShortenedSentence(row, width)), "\n");
  }
}

void AppendWrapped(const std::string& text, std::size_t indent, std::string& out) {
  std::size_t column = indent;
  bool is_first = true;
  for (const absl::string_view whole_word : absl::StrSplit(text, ' ', absl::SkipEmpty())) {
    const std::string word = Shortened(Printable(std::string(whole_word)), TextWidth());
    if (!is_first && column + 1 + word.size() > TextWidth()) {
      absl::StrAppend(&out, "\n", std::string(indent, ' '));
      column = indent;
      is_first = true;
    }
    absl::StrAppend(&out, is_first ? "" : " ", word);
    column += word.size() + (is_first ? 0 : 1);
    is_first = false;
  }
  out += "\n";
}

void AppendSection(absl::string_view title, absl::string_view remark, std::string& out) {
  absl::StrAppend(&out, "\n", title);
  if (!remark.empty()) absl::StrAppend(&out, "   (", remark, ")");
  out += "\n";
}

std::string Printable(absl::string_view text) { return formats::ToPrintable(text); }

std::string Shortened(const std::string& text, std::size_t width) {
  if (text.size() <= width) return text;
  std::size_t end = width - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end) + "...";
}

std::string ShortenedSentence(const std::string& text, std::size_t width) {
  constexpr absl::string_view kDots = " ...";
  if (text.size() <= width || width < kDots.size()) return Shortened(text, width);
  const std::size_t end = text.rfind(' ', width - kDots.size());
  return end == std::string::npos ? Shortened(text, width) : absl::StrCat(text.substr(0, end), kDots);
}

std::string MiddleCut(const std::string& text, std::size_t width) {
  constexpr std::size_t kDots = 3;
  if (text.size() <= width || width <= kDots + 2) return Shortened(text, width);
  const std::size_t head = (width - kDots) / 2;
  std::size_t tail = text.size() - (width - kDots - head);
  while (tail < text.size() && (static_cast<unsigned char>(text[tail]) & 0xc0) == 0x80) ++tail;
  return Shortened(text, head + kDots) + text.substr(tail);
}

}  // namespace ashlar::report
