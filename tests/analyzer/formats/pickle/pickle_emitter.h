// A pickle by hand, for tests: each function gives the opcodes of one value, without memo, in protocol 2 spelling.
// Shares nothing with the product's reader and writer.
//
//   std::string file = emit::File(emit::Dict({{"segments", emit::List({})}}));
#ifndef ASHLAR_TESTS_ANALYZER_FORMATS_PICKLE_PICKLE_EMITTER_H_
#define ASHLAR_TESTS_ANALYZER_FORMATS_PICKLE_PICKLE_EMITTER_H_

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace ashlar::emit {

inline std::string Bytes(std::uint64_t value, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
  return out;
}

// Eight bytes of LONG1 up to 2^63, nine above.
inline std::string Int(std::uint64_t value) {
  const bool nine = value >> 63 != 0;
  return std::string("\x8a") + (nine ? '\x09' : '\x08') + Bytes(value, 8) + (nine ? std::string(1, '\0') : "");
}
inline std::string Negative(std::int64_t value) {
  return std::string("\x8a\x08") + Bytes(static_cast<std::uint64_t>(value), 8);
}
inline std::string Text(const std::string& text) { return "X" + Bytes(text.size(), 4) + text; }
inline std::string Bool(bool value) { return value ? "\x88" : "\x89"; }
inline std::string None() { return "N"; }

inline std::string List(const std::vector<std::string>& items) {
  std::string out = "](";
  for (const std::string& item : items) out += item;
  return out + "e";
}
inline std::string Pair(const std::string& first, const std::string& second) { return first + second + "\x86"; }

using Item = std::pair<std::string, std::string>;
inline std::string Dict(const std::vector<Item>& items) {
  std::string out = "}(";
  for (const auto& [key, value] : items) out += Text(key) + value;
  return out + "u";
}

inline std::string File(const std::string& body) { return std::string("\x80\x02") + body + "."; }

}  // namespace ashlar::emit

#endif  // ASHLAR_TESTS_ANALYZER_FORMATS_PICKLE_PICKLE_EMITTER_H_
