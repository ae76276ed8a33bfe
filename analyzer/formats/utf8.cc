#include "analyzer/formats/utf8.h"

#include <cstdint>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace ashlar::formats {
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

// `character` is one of valid UTF-8.
bool IsControl(absl::string_view character) {
  const std::uint8_t first = Byte(character, 0);
  return first < 0x20 || first == 0x7f || (first == 0xc2 && Byte(character, 1) < 0xa0);
}

// For each byte of no character, and for each character that is not wanted.
template <typename IsUnwanted>
std::string WithQuestionMarks(absl::string_view text, IsUnwanted is_unwanted) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = SequenceLength(text, i);
    const absl::string_view character = text.substr(i, length);
    absl::StrAppend(&out, length == 0 || is_unwanted(character) ? "?" : character);
    i += length == 0 ? 1 : length;
  }
  return out;
}

// A character beyond 0xffff is a pair of units; a half of one alone becomes U+FFFD.
void AppendCharacter(std::uint32_t code, std::string& out) {
  const auto add = [&out](std::uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  const auto rest = [&](int shift) { add(0x80 | ((code >> shift) & 0x3f)); };
  if (code < 0x80) return add(code);
  if (code < 0x800) {
    add(0xc0 | (code >> 6));
    return rest(0);
  }
  if (code < 0x10000) {
    add(0xe0 | (code >> 12));
    rest(6);
    return rest(0);
  }
  add(0xf0 | (code >> 18));
  rest(12);
  rest(6);
  rest(0);
}

std::string Utf8Of16(absl::string_view bytes, bool is_little) {
  const std::size_t units = bytes.size() / 2;
  const auto unit = [&](std::size_t i) {
    const std::uint32_t first = Byte(bytes, 2 * i), second = Byte(bytes, 2 * i + 1);
    return is_little ? second << 8 | first : first << 8 | second;
  };
  std::string out;
  out.reserve(units);
  for (std::size_t i = 0; i < units; ++i) {
    std::uint32_t code = unit(i);
    if (code >= 0xd800 && code < 0xe000) {
      const std::uint32_t low = code < 0xdc00 && i + 1 < units ? unit(i + 1) : 0;
      const bool is_pair = low >= 0xdc00 && low < 0xe000;
      code = is_pair ? 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00) : 0xfffd;
      i += is_pair ? 1 : 0;
    }
    AppendCharacter(code, out);
  }
  return out;
}

}  // namespace

bool HasByteOrderMark(absl::string_view bytes) {
  return bytes.substr(0, 3) == "\xef\xbb\xbf" || bytes.substr(0, 2) == "\xff\xfe" || bytes.substr(0, 2) == "\xfe\xff";
}

std::optional<std::string> WithoutByteOrderMark(absl::string_view bytes) {
  if (bytes.substr(0, 3) == "\xef\xbb\xbf") return std::string(bytes.substr(3));
  if (bytes.substr(0, 2) == "\xff\xfe") return Utf8Of16(bytes.substr(2), /*is_little=*/true);
  if (bytes.substr(0, 2) == "\xfe\xff") return Utf8Of16(bytes.substr(2), /*is_little=*/false);
  return std::nullopt;
}

bool IsUtf8(absl::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = SequenceLength(text, i);
    if (length == 0) return false;
    i += length;
  }
  return true;
}

std::string ToUtf8(absl::string_view text) {
  return WithQuestionMarks(text, [](absl::string_view /*character*/) { return false; });
}

std::string ToPrintable(absl::string_view text) { return WithQuestionMarks(text, IsControl); }

std::string Quoted(absl::string_view text) {
  constexpr std::size_t kShown = 60;
  return absl::StrCat("'", absl::CHexEscape(text.substr(0, kShown)), text.size() > kShown ? "...'" : "'");
}

}  // namespace ashlar::formats
