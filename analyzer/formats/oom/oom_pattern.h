// A message of a library as one line of words with slots, so that a family of messages is a row of a table:
//
//   "Out of gpu memory. Free: {free} Asked: {tried}"
//
// Blanks of a pattern say nothing, as in the squeezed text that it is matched with. The slots:
//
//   {tried} {free} {total} {limit} {reserved} {allocated}   a figure, with or without a unit, of that field
//   {total:GiB}    the same where the unit stands elsewhere, as in "Total (GiB): 80.0"; 10^6 B is {total:MB10}
//   {weights}      any other name: a figure among the details; one that is printed negative is `weights_missing`
//   {device}       the number of the device
//   {#name}        a number that counts: the note `name` of that count
//   {$name}        text up to the words that follow: the note `name`
//   {*60}          up to so many bytes that say nothing, up to the words that follow
//   {?}            what follows may be left out, all or in part
//
// Private to the reader of out-of-memory messages. Pure functions, safe from any thread.
#ifndef ASHLAR_ANALYZER_FORMATS_OOM_OOM_PATTERN_H_
#define ASHLAR_ANALYZER_FORMATS_OOM_OOM_PATTERN_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "analyzer/formats/oom/oom_parser.h"

namespace ashlar::formats::oom {

struct MessageRow {
  absl::string_view family;
  FindingKind kind;
  absl::string_view pattern;
  // A note that every message of the row has: what the analysis goes by. Empty: none.
  absl::string_view note = {};
  absl::string_view note_text = {};
};

class Pattern {
 public:
  explicit Pattern(const MessageRow& row);

  // The words that give a message away: the pattern up to its first slot, squeezed.
  const std::string& anchor() const { return elements_.front().words; }
  const MessageRow& row() const { return row_; }

  // The message whose anchor begins at `at`.
  std::optional<FoundMessage> Match(const SqueezedText& text, std::size_t at) const;

 private:
  struct Element {
    char kind;          // 'w' words, 'f' figure, 'd' device, '#', '$', '*', '?'
    std::string words;  // of 'w'; else the slot's name
    std::size_t reach = 0;
    std::uint64_t unit_bytes = 0;  // of 'f': of a number without a unit; 0: none is expected
  };
  bool Take(const Element& element, std::size_t index, Cursor& cursor, const SqueezedText& text,
            OomMessage& message) const;
  bool TakeFigure(const Element& element, Cursor& cursor, OomMessage& message) const;

  MessageRow row_;
  std::vector<Element> elements_;
};

// Every row of the table, in order of preference.
const std::vector<Pattern>& Patterns();

}  // namespace ashlar::formats::oom

#endif  // ASHLAR_ANALYZER_FORMATS_OOM_OOM_PATTERN_H_
