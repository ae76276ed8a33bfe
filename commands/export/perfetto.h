// A run as a Perfetto trace, for https://ui.perfetto.dev and trace_processor: counter tracks (allocated, active,
// reserved, requested, stranded), slices (steps, phases, the lives of segments) and instants (failures, times that the
// cache was returned, the moment that explain looks at). Protobuf, written packet by packet.
//
//   PerfettoWriter writer(out);
//   writer.Add(run);   // for each device: a group of tracks
//
// A counter has a packet wherever its value changes. Times are those of the trace; without them an event is a
// microsecond.
#ifndef ASHLAR_COMMANDS_EXPORT_PERFETTO_H_
#define ASHLAR_COMMANDS_EXPORT_PERFETTO_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "allocator/base/byte_sink.h"
#include "analyzer/timeline/timeline.h"
#include "commands/export/event_walk.h"
#include "commands/export/exported_run.h"
#include "commands/export/perfetto_packets.h"

namespace ashlar::exports {

class PerfettoWriter {
 public:
  explicit PerfettoWriter(ByteSink& out) : packets_(out) {}
  void Add(const ExportedRun& run);

 private:
  struct Slice {
    std::string name;
    timeline::EventIndex begin = 0, end = 0;
    PerfettoFacts facts = {};
  };

  std::uint64_t NextId() { return ++last_id_; }
  void Counters(const ExportedRun& run, const EventClock& clock, std::uint64_t parent);
  void Slices(const std::vector<Slice>& slices, const std::string& name, bool may_nest, std::uint64_t rank,
              const EventClock& clock, std::uint64_t parent);
  void Instants(const ExportedRun& run, const EventClock& clock, std::uint64_t parent);
  static std::vector<Slice> StepsOf(const ExportedRun& run);
  static std::vector<Slice> PhasesOf(const ExportedRun& run);
  static std::vector<Slice> SegmentsOf(const ExportedRun& run);

  PerfettoPackets packets_;
  std::uint64_t last_id_ = 0;
};

// Slices laid on lanes so that those of one lane nest or lie apart, as a track of a trace viewer needs them.
//
//   |---- a ----|  |-- c --|        lane 0
//        |----- b -----|            lane 1: overlaps a and c
//
//   std::vector<std::size_t> lanes = LanesOf(slices, /*may_nest=*/false);
struct LaneSlice {
  timeline::EventIndex begin = 0;
  timeline::EventIndex end = 0;  // not before begin
};

// The lane of each: the first that has room, longer slices first where they begin together. O(n lanes).
std::vector<std::size_t> LanesOf(absl::Span<const LaneSlice> slices, bool may_nest);

}  // namespace ashlar::exports

#endif  // ASHLAR_COMMANDS_EXPORT_PERFETTO_H_
