// Packets of a Perfetto trace (protos/perfetto/trace/trace_packet.proto): tracks, counters, slices and instants of one
// sequence. Times are nanoseconds, and never go backwards on a track.
//
//   PerfettoPackets packets(out);
//   packets.Track(1, 0, "device 0");
//   packets.CounterTrack(2, 1, "allocated");
//   packets.Counter(2, 1'000, 4096);
#ifndef ASHLAR_ANALYZER_EXPORTS_PERFETTO_PACKETS_H_
#define ASHLAR_ANALYZER_EXPORTS_PERFETTO_PACKETS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "allocator/base/byte_sink.h"
#include "analyzer/exports/protobuf.h"

namespace ashlar::exports {

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

#endif  // ASHLAR_ANALYZER_EXPORTS_PERFETTO_PACKETS_H_
