// Writes messages of Protocol Buffers by field number, without their descriptions.
//
//   ProtobufMessage event;
//   event.Number(9, 4);                 // type: TYPE_COUNTER
//   ProtobufMessage packet;
//   packet.Nested(11, event);           // track_event
//   out.Append(packet.bytes());
//
// Wire format: https://protobuf.dev/programming-guides/encoding. Not thread-safe.
#ifndef ASHLAR_ANALYZER_EXPORTS_PROTOBUF_H_
#define ASHLAR_ANALYZER_EXPORTS_PROTOBUF_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace ashlar::exports {

class ProtobufMessage {
 public:
  // uint32, uint64, bool, enum; int64 as its 64 bits.
  void Number(std::uint32_t field, std::uint64_t value) {
    Varint(std::uint64_t{field} << 3);
    Varint(value);
  }
  // string, bytes.
  void Text(std::uint32_t field, absl::string_view text) {
    Varint(std::uint64_t{field} << 3 | 2);
    Varint(text.size());
    bytes_.append(text.data(), text.size());
  }
  void Nested(std::uint32_t field, const ProtobufMessage& message) { Text(field, message.bytes_); }

  const std::string& bytes() const { return bytes_; }
  void Clear() { bytes_.clear(); }

 private:
  void Varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<char>(value | 0x80));
    bytes_.push_back(static_cast<char>(value));
  }

  std::string bytes_;
};

}  // namespace ashlar::exports

#endif  // ASHLAR_ANALYZER_EXPORTS_PROTOBUF_H_
