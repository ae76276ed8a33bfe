// A whole snapshot as a recording.

#include "allocator/trace/codec.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "allocator/trace/codec_format.h"
#include "allocator/trace/codec_settings.h"
#include "allocator/trace/decoder.h"
#include "allocator/trace/encoder.h"
#include "allocator/trace/state_after.h"

namespace ashlar::trace {
namespace {

constexpr std::size_t kChunkBytes = std::size_t{64} << 10;

// Facts stand where they happened, in their device's events.
void PutTrace(const Snapshot& snapshot, std::size_t device, codec::Encoder& encoder) {
  const bool has_facts = snapshot.recording.has_value() && snapshot.recording->device == static_cast<int>(device);
  const std::vector<Event>& events = snapshot.device_traces[device];
  std::size_t next_fact = 0;
  const auto put_facts = [&](std::uint64_t until) {
    if (!has_facts) return;
    const std::vector<Fact>& facts = snapshot.recording->facts;
    for (; next_fact < facts.size() && facts[next_fact].event <= until; ++next_fact) {
      encoder.AddFact(facts[next_fact].what);
    }
  };
  encoder.SetDevice(static_cast<int>(device));
  for (std::size_t i = 0; i < events.size(); ++i) {
    put_facts(i);
    encoder.Add(events[i], events[i].block_size_bytes, events[i].time_us, events[i].stack);
  }
  put_facts(events.size());
}

void PutHost(const HostMemory& host, codec::Encoder& encoder) {
  if (host.IsEmpty()) return;
  encoder.SetDevice(0);
  encoder.SetHost(true);
  encoder.AddSegments(codec::StateAt::kEnd, host.segments);
  for (const Event& event : host.events) encoder.Add(event, event.block_size_bytes, event.time_us, event.stack);
}

}  // namespace

std::string Encode(const Snapshot& snapshot) {
  std::string out;
  StringSink sink(&out);
  Encode(snapshot, sink);
  return out;
}

void Encode(const Snapshot& snapshot, ByteSink& out) {
  codec::ChunkBytes chunks;
  out.Append(chunks.FileHeader());
  codec::Encoder encoder(kChunkBytes, [&](codec::ChunkKind, absl::string_view payload) {
    out.Append(chunks.HeaderOf(payload));
    out.Append(payload);
  });
  codec::PutHead(snapshot, encoder, snapshot.recording.has_value() && !snapshot.recording->is_complete);
  encoder.DefineStacks(snapshot.stacks);
  encoder.DefineLabels(snapshot.labels);
  if (snapshot.recording.has_value()) {
    if (snapshot.recording->start.has_value()) codec::PutStart(*snapshot.recording->start, encoder);
    encoder.AddReservations(snapshot.recording->reservations);
  }
  codec::PutSegments(codec::StateAt::kEnd, snapshot.segments, encoder);
  for (std::size_t device = 0; device < snapshot.device_traces.size(); ++device) PutTrace(snapshot, device, encoder);
  for (const Annotation& mark : snapshot.annotations) {
    encoder.SetDevice(mark.device);
    encoder.AddMark(mark.stage, mark.name, mark.time_us);
  }
  PutHost(snapshot.host, encoder);
  if (snapshot.holders.has_value()) encoder.AddHolders(*snapshot.holders, /*is_peak=*/false);
  if (snapshot.peak_holders.has_value()) encoder.AddHolders(*snapshot.peak_holders, /*is_peak=*/true);
  encoder.End(encoder.event_count());
}

struct RecordingFollower::Impl {
  codec::Decoder decoder{absl::string_view(), DecodeLimits{}};
  absl::Status status;
};

RecordingFollower::RecordingFollower() : impl_(std::make_unique<Impl>()) {}
RecordingFollower::~RecordingFollower() = default;

absl::StatusOr<std::size_t> RecordingFollower::Take(absl::string_view bytes) {
  if (!impl_->status.ok()) return impl_->status;
  absl::StatusOr<std::size_t> taken = impl_->decoder.ReadWhole(bytes);
  impl_->status = taken.status();
  return taken;
}

std::vector<EventList> RecordingFollower::TakeEvents() { return impl_->decoder.TakeEvents(); }

bool RecordingFollower::has_ended() const { return impl_->decoder.is_ended(); }

bool RecordingFollower::begins_with_state() const {
  return impl_->decoder.head().HasSegmentsAt(codec::StateAt::kStart);
}

std::vector<SnapshotSegment> RecordingFollower::start() const {
  std::vector<SnapshotSegment> start = impl_->decoder.start();
  const absl::Status status = CheckSegments(start);
  return status.ok() ? start : std::vector<SnapshotSegment>();
}

std::optional<std::uint64_t> RecordingFollower::device_total_bytes() const {
  const std::map<std::string, std::string>& values = impl_->decoder.head().recording_values;
  const auto total = values.find("device_total_bytes");
  std::uint64_t bytes = 0;
  if (total == values.end() || !absl::SimpleAtoi(total->second, &bytes) || bytes == 0) return std::nullopt;
  return bytes;
}

}  // namespace ashlar::trace
