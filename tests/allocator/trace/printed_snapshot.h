// Every field of a snapshot as text, one line a thing, so that two are compared with a difference that can be read.
// Notes, and where in its file an event lay, are left out.
#ifndef ASHLAR_TESTS_ALLOCATOR_TRACE_PRINTED_SNAPSHOT_H_
#define ASHLAR_TESTS_ALLOCATOR_TRACE_PRINTED_SNAPSHOT_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/trace/codec_format.h"
#include "allocator/trace/snapshot.h"

namespace ashlar::trace {

inline std::string Printed(const std::optional<std::uint64_t>& value) {
  return value.has_value() ? absl::StrCat(*value) : "-";
}

inline std::string PrintedStack(const Snapshot& snapshot, StackId stack) {
  if (stack == kNoStack) return "no stack";
  std::string out = "stack";
  for (const FrameId id : snapshot.stacks.stack(stack)) {
    const Frame& frame = snapshot.stacks.frame(id);
    absl::StrAppend(&out, " ", snapshot.stacks.RecordedFile(id), ":", frame.line, ":", frame.function, frame.fx.op,
                    frame.fx.name, frame.fx.target, frame.fx.original_trace);
  }
  return out;
}

inline std::string PrintedLabel(const Label& label) {
  if (label == Label{}) return "";
  return absl::StrCat(" label ", label.user_metadata, "|", label.internal_metadata, "|", label.compile_context);
}

inline std::string PrintedEvent(const Snapshot& snapshot, const Event& event) {
  return absl::StrCat(ActionName(event.action), " ", event.address, " ", event.size_bytes, " in ",
                      event.block_size_bytes, " stream ", Handle(event.stream), " at ", event.time_us, " pool ",
                      event.pool.has_value() ? absl::StrCat((*event.pool).first, "/", (*event.pool).second) : "-", " ",
                      PrintedStack(snapshot, event.stack), PrintedLabel(snapshot.labels.label(event.label)), "\n");
}

inline std::string PrintedSegments(const Snapshot& snapshot, const std::vector<SnapshotSegment>& segments) {
  std::string out;
  for (const SnapshotSegment& s : segments) {
    absl::StrAppend(&out, "segment ", s.device, " ", s.address, " ", s.size_bytes, " stream ", Handle(s.stream),
                    " small ");
    absl::StrAppend(&out, s.is_small_pool, " expandable ", s.is_expandable, " pool ", s.pool.first, "/", s.pool.second,
                    " ", PrintedStack(snapshot, s.stack), "\n");
    for (const SnapshotBlock& b : s.blocks) {
      absl::StrAppend(&out, "  block ", b.address, " ", b.size_bytes, " requested ", Printed(b.requested_bytes),
                      " state ", static_cast<int>(b.state), " ", PrintedStack(snapshot, b.stack), "\n");
    }
  }
  return out;
}

inline std::string PrintedHolders(const Holders& names) {
  std::string out = absl::StrCat("names ", names.when, " ", absl::StrFormat("%.6f", names.seconds), " ", names.objects,
                                 " ", names.bound, "\n");
  for (const Holder& h : names.holders) {
    absl::StrAppend(&out, "  holder ", h.kind, "|", h.name, "|", h.file, ":", h.line, "|", h.function, "|", h.nodes,
                    "|", h.mode, "|", h.container);
    for (const std::string& trait : h.traits) absl::StrAppend(&out, " trait ", trait);
    for (const std::string& variable : h.variables) absl::StrAppend(&out, " variable ", variable);
    out += "\n";
  }
  for (const HeldBlock& b : names.blocks) {
    absl::StrAppend(&out, "  held ", b.address, " by ", b.owner);
    for (const std::uint32_t other : b.others) absl::StrAppend(&out, " ", other);
    out += "\n";
  }
  return out;
}

inline std::string PrintedSegments(const Snapshot& snapshot) { return PrintedSegments(snapshot, snapshot.segments); }

inline std::string PrintedEvents(const Snapshot& snapshot) {
  std::string out;
  for (const EventList& events : snapshot.device_traces) {
    absl::StrAppend(&out, "trace of ", events.size(), "\n");
    for (const Event& event : events) out += PrintedEvent(snapshot, event);
  }
  return out;
}

inline std::string PrintedSnapshot(const Snapshot& snapshot) {
  std::string out = PrintedSegments(snapshot, snapshot.segments) + PrintedEvents(snapshot);
  if (!snapshot.host.IsEmpty()) out += "host\n" + PrintedSegments(snapshot, snapshot.host.segments);
  for (const Event& event : snapshot.host.events) out += PrintedEvent(snapshot, event);
  for (const Annotation& a : snapshot.annotations) {
    absl::StrAppend(&out, "annotation ", a.stage, " ", a.name, " ", a.device, " ", a.time_us, "\n");
  }
  if (snapshot.settings.has_value()) {
    const RecordedSettings& s = *snapshot.settings;
    absl::StrAppend(&out, "settings ", s.conf, " ", Printed(s.max_split_size_bytes), " ",
                    absl::StrFormat("%a", s.garbage_collection_threshold), " ", s.expandable_segments, "\n");
    for (const auto& [key, value] : s.values) absl::StrAppend(&out, "  ", key, "=", value, "\n");
  }
  if (snapshot.recording.has_value()) {
    const RecordingInfo& r = *snapshot.recording;
    absl::StrAppend(&out, "recording ", r.compat, " ", r.free_order, " ", r.device, " ", r.device_total_bytes, " ");
    absl::StrAppend(&out, Printed(r.limit_bytes), " ", r.is_complete, " ", r.events_before, "\n");
    const auto add_range = [&out](const char* what, const ReservedRange& range) {
      absl::StrAppend(&out, what, range.address, " ", range.size_bytes);
      if (range.lane.has_value()) {
        absl::StrAppend(&out, " lane ", Handle(range.lane->stream), " ", range.lane->is_small_pool, " ",
                        range.lane->pool.first, " ", range.lane->pool.second);
      }
      out += "\n";
    };
    absl::StrAppend(&out, "  calls ", r.has_calls, "\n");
    for (const ReservedRange& range : r.reservations) add_range("  reserved ", range);
    if (r.start.has_value()) {
      absl::StrAppend(&out, "  start ", r.start->has_segments, "\n");
      for (const ReservedRange& range : r.start->reservations) add_range("  reserved at start ", range);
      for (const SnapshotSegment& segment : r.start->segments) {
        absl::StrAppend(&out, "  at start ", segment.address, " ", segment.size_bytes, " ", segment.blocks.size(),
                        "\n");
      }
    }
    for (const Fact& f : r.facts) {
      const codec::FactNumbers numbers = codec::NumbersOf(f.what);
      const PoolId pool = numbers.pool.value_or(PoolId{});
      absl::StrAppend(&out, "  fact ", numbers.kind, " ", numbers.number, " before ", f.event, " pool ", pool.first,
                      " ", pool.second, " size ", numbers.size_bytes.value_or(0), "\n");
    }
  }
  for (const std::optional<Holders>* const names : {&snapshot.holders, &snapshot.peak_holders}) {
    if (names->has_value()) out += PrintedHolders(**names);
  }
  const Traits& t = snapshot.traits;
  absl::StrAppend(&out, "traits ", t.has_time, t.has_stacks, t.has_requested_bytes, t.has_pool_ids, t.has_labels,
                  t.has_host, t.has_settings, t.has_block_addresses, " ", t.generation, "\n");
  return out;
}

}  // namespace ashlar::trace

#endif  // ASHLAR_TESTS_ALLOCATOR_TRACE_PRINTED_SNAPSHOT_H_
