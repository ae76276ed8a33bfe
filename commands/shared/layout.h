// Lays out sections of text for a terminal, the same in every report.
#ifndef ASHLAR_COMMANDS_SHARED_LAYOUT_H_
#define ASHLAR_COMMANDS_SHARED_LAYOUT_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace ashlar::report {

inline constexpr std::size_t kTextWidth = 100;  // where no terminal says otherwise
inline constexpr std::size_t kLeastTextWidth = 60;
inline constexpr std::size_t kMostTextWidth = 200;

// Of every report from here on: what a program sets once, before it prints. Clamped to the two limits above; nullopt:
// kTextWidth for sentences, and rows as long as they are.
void SetTextWidth(std::optional<std::size_t> columns);
std::size_t TextWidth();

// The room of a label that ends a row, `before` columns into it; `usual` where no terminal says otherwise.
std::size_t LabelRoom(std::size_t before, std::size_t usual);

// The rows of a table in one of its forms, from the fullest to the one with the fewest columns: the first in which
// every row fits the terminal, else the last with its rows cut. No row is broken. Without a terminal the first.
using RowTexts = std::vector<std::string>;
void AppendRows(const std::vector<RowTexts>& forms, std::string& out);

// Words up to TextWidth() columns, further lines indented by `indent`; the caller has indented the first. Ends the
// line.
void AppendWrapped(const std::string& text, std::size_t indent, std::string& out);

// An empty line, the title, and the remark in brackets if there is one.
void AppendSection(absl::string_view title, absl::string_view remark, std::string& out);

// Breaks the lines that are longer than the width that was set at blanks, further parts indented by 4 more; those in
// `verbatim` (leading blanks apart) and the line to paste stay as they are. Without a width: the text as it is.
std::string Fitted(const std::string& text, const std::vector<std::string>& verbatim);

// Text from a file made fit for a terminal.

// What a file names may hold anything: control characters, which would reach the terminal, become '?', and so do bytes
// that are no UTF-8.
std::string Printable(absl::string_view text);

// At most `width` bytes, cut between characters of UTF-8.
std::string Shortened(const std::string& text, std::size_t width);

// The same for a sentence: cut behind a whole word, so that no figure is read that is not there.
std::string ShortenedSentence(const std::string& text, std::size_t width);

// The same with the middle left out, where the text is longer: the beginning and the end tell more of a label.
//
//   "a_very_long_package_name.py:123 forward"  ->  "a_very_long_p...123 forward"
std::string MiddleCut(const std::string& text, std::size_t width);

}  // namespace ashlar::report

#endif  // ASHLAR_COMMANDS_SHARED_LAYOUT_H_
