// Any bytes as a PyTorch snapshot: read, or refused with a text; the blocks of what is read tile their segments.
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "allocator/base/check.h"
#include "analyzer/readers/sniff.h"
#include "analyzer/readers/torch_snapshot.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  ashlar::readers::Sniff(bytes);
  const auto snapshot = ashlar::readers::ReadTorchSnapshot(bytes);
  if (!snapshot.ok()) {
    ASHLAR_CHECK(!snapshot.status().message().empty());
    return 0;
  }
  for (const ashlar::trace::SnapshotSegment& segment : snapshot->segments) {
    std::uint64_t at = segment.address;
    for (const ashlar::trace::SnapshotBlock& block : segment.blocks) {
      ASHLAR_CHECK_EQ(block.address, at);
      at += block.size_bytes;
    }
  }
  return 0;
}
