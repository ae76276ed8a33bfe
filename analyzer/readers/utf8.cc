#include "analyzer/readers/utf8.h"

#include <cstdint>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace ashlar::readers {
namespace {

std::uint8_t Byte(absl::string_view text, std::size_t i) { return static_cast<std::uint8_t>(text[i]); }

bool IsContinuation(absl::string_view text, std::size_t i) { return i < text.size() && (Byte(text, i) & 0xc0) == 0x80; }

// The length of the valid sequence at `i`, 0 where there is none. Table 3-7 of the Unicode standard.
std::size_t SequenceLength(absl::string_view text, std::size_t i) {
  const std::uint8_t first = Byte(text, i);
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4 || !IsContinuation(text, i + 1)) return 0;
  if (first < 0xe0) return 2;
  const std::uint8_t second = Byte(text, i + 1);
  if (first == 0xe0 && second < 0xa0) return 0;
  if (first == 0xed && second > 0x9f) return 0;
  if (!IsContinuation(text, i + 2)) return 0;
  if (first < 0xf0) return 3;
  if ((first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f)) return 0;
  return IsContinuation(text, i + 3) ? 4 : 0;
}

}  // namespace

bool IsUtf8(absl::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = SequenceLength(text, i);
    if (length == 0) return false;
    i += length;
  }
  return true;
}

std::string ToUtf8(absl::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = SequenceLength(text, i);
    if (length == 0) {
      out.push_back('?');
      ++i;
    } else {
      absl::StrAppend(&out, text.substr(i, length));
      i += length;
    }
  }
  return out;
}

std::string Quoted(absl::string_view text) {
  constexpr std::size_t kShown = 60;
  return absl::StrCat("'", absl::CHexEscape(text.substr(0, kShown)), text.size() > kShown ? "...'" : "'");
}

}  // namespace ashlar::readers
