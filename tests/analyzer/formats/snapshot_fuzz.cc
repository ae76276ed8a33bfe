// Any bytes give a snapshot or an error. A snapshot obeys the model's rules, and written out and read back it is the
// same size, also when it was damaged on the way. Read as it comes and read whole, a file is the same.
#include <cstddef>
#include <cstdint>
#include <string>

#include "allocator/base/check.h"
#include "analyzer/formats/formats.h"
#include "analyzer/formats/torch/torch_snapshot.h"

namespace {

using ashlar::trace::Snapshot;

void CheckTiling(const Snapshot& snapshot) {
  for (const auto& segment : snapshot.segments) {
    std::uint64_t at = segment.address;
    for (const auto& block : segment.blocks) {
      ASHLAR_CHECK_EQ(block.address, at);
      at += block.size_bytes;
    }
    ASHLAR_CHECK_EQ(at, segment.address + segment.size_bytes);
  }
}

void CheckRoundTrip(const Snapshot& snapshot) {
  const auto again = ashlar::formats::ReadTorchSnapshot(ashlar::formats::WriteTorchSnapshot(snapshot));
  ASHLAR_CHECK(again.ok());
  ASHLAR_CHECK_EQ(again->segments.size(), snapshot.segments.size());
  ASHLAR_CHECK_EQ(again->device_traces.size(), snapshot.device_traces.size());
  for (std::size_t i = 0; i < snapshot.device_traces.size(); ++i) {
    ASHLAR_CHECK_EQ(again->device_traces[i].size(), snapshot.device_traces[i].size());
  }
  ASHLAR_CHECK_EQ(again->annotations.size(), snapshot.annotations.size());
}

std::string ResultOf(const absl::StatusOr<Snapshot>& snapshot) {
  if (!snapshot.ok()) return snapshot.status().ToString();
  std::string out = ashlar::formats::WriteTorchSnapshot(*snapshot);
  for (const auto& note : snapshot->notes) out += note.name + std::to_string(note.count) + note.message;
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  ashlar::formats::Sniff(bytes);
  const auto snapshot = ashlar::formats::ReadTorchSnapshot(bytes);
  ASHLAR_CHECK(ResultOf(snapshot) == ResultOf(ashlar::formats::ReadTorchSnapshotWhole(bytes)));
  if (!snapshot.ok()) {
    ASHLAR_CHECK(!snapshot.status().message().empty());
    return 0;
  }
  CheckTiling(*snapshot);
  CheckRoundTrip(*snapshot);
  return 0;
}
