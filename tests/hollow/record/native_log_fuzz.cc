// Any bytes give a trace or an error of one line. A trace's events lead to its segments, whatever the rows say, so that
// it can be explained; kept as a recording it is the same.
#include <cstddef>
#include <cstdint>
#include <string>

#include "allocator/base/check.h"
#include "allocator/trace/codec.h"
#include "analyzer/formats/native/native_log.h"

namespace {

using ashlar::trace::Action;
using ashlar::trace::Snapshot;

// What is alive after the events, by address.
std::uint64_t LiveBytes(const Snapshot& snapshot) {
  std::uint64_t out = 0;
  for (const auto& events : snapshot.device_traces) {
    for (const ashlar::trace::Event& event : events) {
      if (event.action == Action::kAlloc) out += event.size_bytes;
      if (event.action == Action::kFreeCompleted) out -= event.size_bytes;
    }
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<Snapshot> snapshot = ashlar::formats::ReadNativeLog(bytes);
  if (!snapshot.ok()) {
    ASHLAR_CHECK(snapshot.status().message().find('\n') == absl::string_view::npos);
    return 0;
  }
  std::uint64_t held = 0, end = 0;
  int device = 0;
  for (const auto& segment : snapshot->segments) {
    ASHLAR_CHECK(segment.device > device || segment.address >= end);
    ASHLAR_CHECK(segment.blocks.size() == 1 && segment.blocks[0].size_bytes == segment.size_bytes);
    device = segment.device;
    end = segment.address + segment.size_bytes;
    held += segment.size_bytes;
  }
  ASHLAR_CHECK(held == LiveBytes(*snapshot));
  const absl::StatusOr<Snapshot> again = ashlar::trace::Decode(ashlar::trace::Encode(*snapshot));
  ASHLAR_CHECK(again.ok() && again->segments == snapshot->segments);
  return 0;
}
