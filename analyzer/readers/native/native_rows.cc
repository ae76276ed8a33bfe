#include "analyzer/readers/native/native_rows.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <iterator>

namespace ashlar::readers {
namespace {

// Fields: n a number, w a word, r all that is left (perhaps nothing).
struct RowKind {
  char kind;
  absl::string_view fields;
};
constexpr RowKind kKinds[] = {
    {'p', "nn"},         // process: number, start in microseconds since 1970
    {'f', "nnwr"},       // frame: number, offset, function, file
    {'s', "nr"},         // stack: number, frames
    {'a', "nnnnnnw"},    // allocation: time, device, address, bytes, stream, stack, call
    {'o', "nnnnnnnwn"},  // failure: time, device, bytes, free, total, stream, stack, call, result
    {'d', "nnnw"},       // free: time, address, stack, call
    {'k', "nnn"},        // the free failed: time, address, result
    {'c', "nnnnnw"},     // memory without an address: time, device, handle, bytes, stack, call
    {'m', "nnnnnnw"},    // mapped: time, address, bytes, handle, offset, stack, call
    {'u', "nnnnw"},      // unmapped: time, address, bytes, stack, call
    {'x', "nnw"},        // everything given back: time, device, call
    {'t', "n"},          // PyTorch came: time
    {'e', "n"},          // the end: time
};

bool ReadFields(absl::string_view fields, absl::string_view line, NativeRow& row) {
  std::size_t numbers = 0;
  for (const char field : fields) {
    if (field == 'r') {
      row.rest = line;
      return true;
    }
    const absl::string_view text = TakeField(line);
    if (field == 'w') row.word = text;
    if (text.empty() || (field == 'n' && !ParseNumber(text, row.numbers[numbers++]))) return false;
  }
  return line.empty();
}

}  // namespace

absl::string_view TakeField(absl::string_view& line) {
  const std::size_t end = std::min(line.find(' '), line.size());
  const absl::string_view field = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return field;
}

// Signed numbers come out as their bits: device -1 is the host.
bool ParseNumber(absl::string_view field, std::uint64_t& value) {
  const bool is_hex = field.substr(0, 2) == "0x";
  const bool is_negative = !is_hex && field.substr(0, 1) == "-";
  field.remove_prefix(is_hex ? 2 : is_negative ? 1 : 0);
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value, is_hex ? 16 : 10);
  if (is_negative) value = 0 - value;
  return error == std::errc() && end == field.data() + field.size();
}

bool NativeRows::NextLine(absl::string_view& line) {
  behind_.ReadTo(text_.data());
  const std::size_t end = std::min(text_.find('\n'), text_.size());
  line = text_.substr(0, end);
  const std::size_t unwritten = line.find('\0');  // from there on room was taken and not written to
  if (end < text_.size() && unwritten == absl::string_view::npos) {
    text_.remove_prefix(end + 1);
    return true;
  }
  is_cut_ = is_cut_ || (!line.empty() && unwritten != 0);
  text_ = {};
  return false;
}

bool NativeRows::Next(NativeRow& row) {
  for (absl::string_view line; NextLine(line);) {
    const absl::string_view kind = TakeField(line);
    const auto* known = std::find_if(std::begin(kKinds), std::end(kKinds),
                                     [&kind](const RowKind& of) { return kind == absl::string_view(&of.kind, 1); });
    row = {};
    if (known == std::end(kKinds)) {
      ++(kind.size() == 1 ? unknown_ : garbled_);
    } else if (row.kind = known->kind; ReadFields(known->fields, line, row)) {
      return true;
    } else {
      ++garbled_;
    }
  }
  return false;
}

}  // namespace ashlar::readers
