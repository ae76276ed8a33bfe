#include "analyzer/report/printable.h"

#include "analyzer/readers/utf8.h"

namespace ashlar::report {

std::string Printable(absl::string_view text) { return readers::ToPrintable(text); }

std::string Shortened(const std::string& text, std::size_t width) {
  if (text.size() <= width) return text;
  std::size_t end = width - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end) + "...";
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
