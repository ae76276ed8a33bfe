#include "commands/export/perfetto_packets.h"

#include "analyzer/formats/utf8.h"

namespace ashlar::exports {
namespace {

// Field numbers, of trace.proto, trace_packet.proto, track_descriptor.proto, counter_descriptor.proto,
// track_event.proto and debug_annotation.proto.
constexpr std::uint32_t kTracePacket = 1;
constexpr std::uint32_t kTimestamp = 8, kSequence = 10, kTrackEvent = 11, kTrackDescriptor = 60;
constexpr std::uint32_t kUuid = 1, kTrackName = 2, kParentUuid = 5, kCounterDescriptor = 8, kChildOrdering = 11,
                        kSiblingRank = 12;
constexpr std::uint32_t kUnit = 3;
constexpr std::uint32_t kDebugAnnotations = 4, kType = 9, kTrackUuid = 11, kEventName = 23, kCounterValue = 30;
constexpr std::uint32_t kFactNumber = 3, kFactText = 6, kFactName = 10;

constexpr std::uint64_t kSizeBytes = 3;  // CounterDescriptor.Unit
constexpr std::uint64_t kByRank = 3;     // TrackDescriptor.ChildTracksOrdering: EXPLICIT
constexpr std::uint64_t kOurSequence = 1;
enum EventType : std::uint64_t { kSliceBegin = 1, kSliceEnd = 2, kInstant = 3, kCounter = 4 };

void AddFacts(const PerfettoFacts& facts, ProtobufMessage& event) {
  for (const auto& [name, value] : facts) {
    ProtobufMessage fact;
    if (const auto* number = std::get_if<std::uint64_t>(&value)) fact.Number(kFactNumber, *number);
    if (const auto* text = std::get_if<std::string>(&value)) fact.Text(kFactText, formats::ToUtf8(*text));
    fact.Text(kFactName, name);
    event.Nested(kDebugAnnotations, fact);
  }
}

}  // namespace

void PerfettoPackets::Write(const ProtobufMessage& packet) {
  file_.Clear();
  file_.Nested(kTracePacket, packet);
  out_.Append(file_.bytes());
}

void PerfettoPackets::Describe(std::uint64_t id, std::uint64_t parent, absl::string_view name, std::uint64_t rank,
                               bool is_counter) {
  ProtobufMessage track;
  track.Number(kUuid, id);
  track.Text(kTrackName, formats::ToUtf8(name));
  if (parent != 0) track.Number(kParentUuid, parent);
  if (is_counter) {
    ProtobufMessage counter;
    counter.Number(kUnit, kSizeBytes);
    track.Nested(kCounterDescriptor, counter);
  }
  track.Number(kChildOrdering, kByRank);
  track.Number(kSiblingRank, rank);
  packet_.Clear();
  packet_.Number(kSequence, kOurSequence);
  packet_.Nested(kTrackDescriptor, track);
  Write(packet_);
}

void PerfettoPackets::Track(std::uint64_t id, std::uint64_t parent, absl::string_view name, std::uint64_t rank) {
  Describe(id, parent, name, rank, /*is_counter=*/false);
}

void PerfettoPackets::CounterTrack(std::uint64_t id, std::uint64_t parent, absl::string_view name, std::uint64_t rank) {
  Describe(id, parent, name, rank, /*is_counter=*/true);
}

void PerfettoPackets::Event(std::int64_t time_ns, const ProtobufMessage& event) {
  packet_.Clear();
  packet_.Number(kTimestamp, static_cast<std::uint64_t>(time_ns));
  packet_.Number(kSequence, kOurSequence);
  packet_.Nested(kTrackEvent, event);
  Write(packet_);
}

void PerfettoPackets::Counter(std::uint64_t track, std::int64_t time_ns, std::uint64_t bytes) {
  event_.Clear();
  event_.Number(kType, kCounter);
  event_.Number(kTrackUuid, track);
  event_.Number(kCounterValue, bytes);
  Event(time_ns, event_);
}

void PerfettoPackets::Named(std::uint64_t type, std::uint64_t track, std::int64_t time_ns, absl::string_view name,
                            const PerfettoFacts& facts) {
  event_.Clear();
  AddFacts(facts, event_);
  event_.Number(kType, type);
  event_.Number(kTrackUuid, track);
  event_.Text(kEventName, formats::ToUtf8(name));
  Event(time_ns, event_);
}

void PerfettoPackets::SliceBegin(std::uint64_t track, std::int64_t time_ns, absl::string_view name,
                                 const PerfettoFacts& facts) {
  Named(kSliceBegin, track, time_ns, name, facts);
}

void PerfettoPackets::SliceEnd(std::uint64_t track, std::int64_t time_ns) {
  event_.Clear();
  event_.Number(kType, kSliceEnd);
  event_.Number(kTrackUuid, track);
  Event(time_ns, event_);
}

void PerfettoPackets::Instant(std::uint64_t track, std::int64_t time_ns, absl::string_view name,
                              const PerfettoFacts& facts) {
  Named(kInstant, track, time_ns, name, facts);
}

}  // namespace ashlar::exports
