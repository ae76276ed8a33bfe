#include "analyzer/replay/recorded_snapshot.h"

#include <utility>

#include "allocator/core/inspect.h"

namespace ashlar::replay {
namespace {

class SnapshotSink final : public OpSink {
 public:
  void SetOp(std::uint64_t) override {}
  void OnEvent(const trace::Event& event, std::uint64_t block_size_bytes) override {
    events.push_back(event);
    events.back().block_size_bytes = block_size_bytes;
  }
  void OnFact(const trace::AnyFact& fact) override { facts.push_back({fact, events.size()}); }

  std::vector<trace::Event> events;
  std::vector<trace::Fact> facts;
};

}  // namespace

absl::StatusOr<trace::Snapshot> RecordRequests(const trace::RequestTrace& requests, RequestReplayOptions options) {
  RequestReplay replay(std::move(options));
  SnapshotSink sink;
  if (absl::Status status = replay.Run(requests, &sink); !status.ok()) return status;
  trace::Snapshot out;
  const core::Inspection inspection(replay.allocator());
  inspection.WhileStill([&] {
    out = inspection.HeadNow(0);
    out.segments = inspection.SegmentsNow();
    out.recording->reservations = inspection.ReservationsNow();
  });
  out.traits.has_time = out.traits.has_stacks = false;
  out.recording->is_complete = true;
  out.recording->start.emplace().has_segments = true;  // of an empty allocator
  out.recording->facts = std::move(sink.facts);
  out.device_traces[0] = std::move(sink.events);
  return out;
}

}  // namespace ashlar::replay
