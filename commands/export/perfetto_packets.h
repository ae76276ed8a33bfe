// Packets of a Perfetto trace (protos/perfetto/trace/trace_packet.proto): tracks, counters, slices and instants of one
// sequence. Times are nanoseconds, and never go backwards on a track.
//
//   PerfettoPackets packets(out);
//   packets.Track(1, 0, "device 0");
//   packets.CounterTrack(2, 1, "allocated");
//   packets.Counter(2, 1'000, 4096);
#ifndef ASHLAR_COMMANDS_EXPORT_PERFETTO_PACKETS_H_
#define ASHLAR_COMMANDS_EXPORT_PERFETTO_PACKETS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "allocator/base/byte_sink.h"

namespace ashlar::exports {

// Writes messages of Protocol Buffers by field number, without their descriptions.
//
//   ProtobufMessage event;
//   event.Number(9, 4);                 // type: TYPE_COUNTER
//   ProtobufMessage packet;
//   packet.Nested(11, event);           // track_event
//   out.Append(packet.bytes());
//
// Wire format: https://protobuf.dev/programming-guides/encoding. Not thread-safe.
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

// Facts that stand beside a slice or instant.
using PerfettoFacts = std::vector<std::pair<const char*, std::variant<std::uint64_t, std::string>>>;

class PerfettoPackets {
 public:
  explicit PerfettoPackets(ByteSink& out) : out_(out) {}

  // Ids are above 0 and unique in the file; `parent` 0: at the top. `rank` orders the tracks of one parent.
  void Track(std::uint64_t id, std::uint64_t parent, absl::string_view name, std::uint64_t rank = 0);
  void CounterTrack(std::uint64_t id, std::uint64_t parent, absl::string_view name, std::uint64_t rank = 0);

  void Counter(std::uint64_t track, std::int64_t time_ns, std::uint64_t bytes);
  void SliceBegin(std::uint64_t track, std::int64_t time_ns, absl::string_view name, const PerfettoFacts& facts = {});
  void SliceEnd(std::uint64_t track, std::int64_t time_ns);
  void Instant(std::uint64_t track, std::int64_t time_ns, absl::string_view name, const PerfettoFacts& facts = {});

 private:
  void Describe(std::uint64_t id, std::uint64_t parent, absl::string_view name, std::uint64_t rank, bool is_counter);
  void Event(std::int64_t time_ns, const ProtobufMessage& event);
  void Named(std::uint64_t type, std::uint64_t track, std::int64_t time_ns, absl::string_view name,
             const PerfettoFacts& facts);
  void Write(const ProtobufMessage& packet);

  ByteSink& out_;
  ProtobufMessage event_, packet_, file_;  // kept for their memory
};

}  // namespace ashlar::exports

#endif  // ASHLAR_COMMANDS_EXPORT_PERFETTO_PACKETS_H_
