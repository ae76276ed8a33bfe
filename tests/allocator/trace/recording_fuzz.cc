// Any bytes give a recording or an error; so do any records inside a chunk that is whole. What is read obeys the
// model's rules, and coded again it reads the same.
#include <cstddef>
#include <cstdint>
#include <string>

#include "allocator/base/check.h"
#include "allocator/trace/codec.h"
#include "allocator/trace/codec_format.h"

namespace {

using ashlar::trace::Snapshot;

void Try(absl::string_view bytes) {
  const absl::StatusOr<Snapshot> snapshot = ashlar::trace::Decode(bytes);
  if (!snapshot.ok()) {
    ASHLAR_CHECK(!snapshot.status().message().empty());
    return;
  }
  for (const auto& segment : snapshot->segments) {
    std::uint64_t at = segment.address;
    for (const auto& block : segment.blocks) {
      ASHLAR_CHECK_EQ(block.address, at);
      at += block.size_bytes;
    }
    if (!segment.blocks.empty()) ASHLAR_CHECK_EQ(at, segment.address + segment.size_bytes);
  }
  const absl::StatusOr<Snapshot> again = ashlar::trace::Decode(ashlar::trace::Encode(*snapshot));
  ASHLAR_CHECK(again.ok());
  ASHLAR_CHECK_EQ(again->segments.size(), snapshot->segments.size());
  ASHLAR_CHECK_EQ(again->annotations.size(), snapshot->annotations.size());
  ASHLAR_CHECK_EQ(again->device_traces.size(), snapshot->device_traces.size());
  for (std::size_t i = 0; i < snapshot->device_traces.size(); ++i) {
    ASHLAR_CHECK_EQ(again->device_traces[i].size(), snapshot->device_traces[i].size());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  Try(bytes);
  ashlar::trace::codec::ChunkBytes chunks;
  std::string whole = ashlar::trace::codec::ChunkBytes::FileHeader();
  // The corpus holds files: their chunks' payloads, and what flips make of them, with the checksums put right.
  const absl::string_view payload = bytes.size() > 48 ? bytes.substr(48) : bytes;
  whole += chunks.HeaderOf(payload);
  whole.append(payload.data(), payload.size());
  Try(whole);
  return 0;
}
