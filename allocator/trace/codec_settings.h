// Writes and reads a recording's description of itself as pairs of texts: settings, contents, origin. Private to the
// codec.
#ifndef ASHLAR_ALLOCATOR_TRACE_CODEC_SETTINGS_H_
#define ASHLAR_ALLOCATOR_TRACE_CODEC_SETTINGS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "allocator/trace/codec_format.h"
#include "allocator/trace/encoder.h"
#include "allocator/trace/snapshot.h"

namespace ashlar::trace::codec {

inline constexpr std::uint64_t kMostDevices = 4096;  // of a recording

// As read.
struct RecordedHead {
  std::map<std::string, std::string> allocator_values;
  std::map<std::string, std::string> recording_values;
  std::vector<Fact> facts;
  std::vector<ReservedRange> reservations;
  std::size_t start_reservations = 0;  // the first of them
  std::vector<SnapshotSegment> start;  // as they stand in the file

  bool HasSegmentsAt(StateAt when) const;
  // Of what was read so far; empty where they cannot be read.
  std::vector<LargePage> LargePagesAtStart() const;
  // Sets settings, traits and recording of `out`, and as many device traces as were recorded. DataLoss names the value
  // that cannot be; what this version does not know becomes a note.
  absl::Status Apply(Snapshot& out);
};

// All of `head` but its events, segments, annotations and stacks. `was_incomplete`: this is a copy of a recording that
// was cut off.
void PutHead(const Snapshot& head, Encoder& encoder, bool was_incomplete = false);
// The setting behind the reservations of the start.
inline constexpr absl::string_view kReservationsAtStart = "reservations_at_start";
// The state in which the recording begins.
void PutStart(const RecordedStart& start, Encoder& encoder);
// From here on the recording holds the segments of that moment.
void PutSegments(StateAt when, absl::Span<const SnapshotSegment> segments, Encoder& encoder);

}  // namespace ashlar::trace::codec

#endif  // ASHLAR_ALLOCATOR_TRACE_CODEC_SETTINGS_H_
