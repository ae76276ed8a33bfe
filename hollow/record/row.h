// One row of a log, made without memory of the heap: fields with a space between them, and a line end.
//
//   Row row('a');
//   row.Decimal(12).Hex(0x7f0000000000).Text("cudaMalloc");
//   log.Append(row.Finish());          // "a 12 0x7f0000000000 cudaMalloc\n"
//
// What does not fit into kMostBytes is left out.
#ifndef ASHLAR_HOLLOW_RECORD_ROW_H_
#define ASHLAR_HOLLOW_RECORD_ROW_H_

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace ashlar::record {

class Row {
 public:
  static constexpr std::size_t kMostBytes = 8192;

  explicit Row(char kind) : used_(1) { bytes_[0] = kind; }

  Row& Decimal(std::int64_t value) { return Number(value, 10); }
  Row& Decimal(std::uint64_t value) { return Number(value, 10); }
  Row& Hex(std::uint64_t value) {
    Text("0x");
    used_ = static_cast<std::size_t>(std::to_chars(Next(), End(), value, 16).ptr - bytes_.data());
    return *this;
  }
  // A line end in it would end the row.
  Row& Text(std::string_view text) {
    Put(" ");
    const std::size_t start = used_;
    Put(text);
    std::replace(bytes_.data() + start, bytes_.data() + used_, '\n', '?');
    return *this;
  }
  std::string_view Finish() {
    bytes_[used_] = '\n';
    return {bytes_.data(), used_ + 1};
  }

 private:
  template <typename Value>
  Row& Number(Value value, int base) {
    Put(" ");
    used_ = static_cast<std::size_t>(std::to_chars(Next(), End(), value, base).ptr - bytes_.data());
    return *this;
  }
  char* Next() { return bytes_.data() + used_; }
  char* End() { return bytes_.data() + kMostBytes - 1; }
  void Put(std::string_view text) {
    const std::size_t bytes = std::min(text.size(), kMostBytes - 1 - used_);
    std::memcpy(Next(), text.data(), bytes);
    used_ += bytes;
  }

  std::array<char, kMostBytes> bytes_;
  std::size_t used_;
};

}  // namespace ashlar::record

#endif  // ASHLAR_HOLLOW_RECORD_ROW_H_
