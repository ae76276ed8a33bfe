// The bytes that a decoder reads records from. Private to the codec.
#ifndef ASHLAR_ALLOCATOR_TRACE_RECORD_BYTES_H_
#define ASHLAR_ALLOCATOR_TRACE_RECORD_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/strings/string_view.h"

namespace ashlar::trace::codec {

// The bytes of one chunk; a read past their end fails and stays failed.
class Bytes {
 public:
  Bytes(absl::string_view all, std::size_t begin, std::size_t size) : begin_(all.data()), at_(all.data() + begin) {
    end_ = at_ + size;
  }
  bool IsEmpty() const { return at_ == end_; }
  bool ok() const { return ok_; }
  void Fail() { ok_ = false; }
  std::uint64_t offset() const { return static_cast<std::uint64_t>(at_ - begin_); }

  unsigned Byte() { return Has(1) ? static_cast<unsigned char>(*at_++) : 0; }
  // The next `size` <= 8 bytes as one integer.
  std::uint64_t Word(unsigned size) {
    std::uint64_t value = 0;
    if (!Has(size)) return 0;
    std::memcpy(&value, at_, size);
    at_ += size;
    return value;
  }
  std::uint64_t Varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const unsigned byte = Byte();
      value |= std::uint64_t{byte & 0x7f} << shift;
      if ((byte & 0x80) == 0) return value;
    }
    ok_ = false;
    return 0;
  }
  absl::string_view Text(std::uint64_t size) {
    if (!Has(size)) return {};
    const absl::string_view text(at_, size);
    at_ += size;
    return text;
  }
  // A varint below `limit`.
  std::uint64_t Below(std::uint64_t limit) {
    const std::uint64_t value = Varint();
    if (value >= limit) ok_ = false;
    return ok_ ? value : 0;
  }

 private:
  bool Has(std::uint64_t size) {
    if (size <= static_cast<std::uint64_t>(end_ - at_)) return ok_;
    ok_ = false;
    at_ = end_;
    return false;
  }

  const char* begin_;
  const char* at_;
  const char* end_;
  bool ok_ = true;
};

}  // namespace ashlar::trace::codec

#endif  // ASHLAR_ALLOCATOR_TRACE_RECORD_BYTES_H_
