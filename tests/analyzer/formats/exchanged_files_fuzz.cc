// Any bytes are unpacked or refused, and read as JSON, as a Chrome trace and as a profile or refused: an error has
// words, what is read obeys the model's rules, and no more is unpacked than the limit.
#include <cstddef>
#include <cstdint>
#include <string>

#include "allocator/base/check.h"
#include "analyzer/formats/formats.h"
#include "analyzer/formats/json/chrome_trace.h"
#include "analyzer/formats/json/json_snapshot.h"
#include "analyzer/formats/pprof/memory_profile.h"
#include "analyzer/formats/unpack.h"

namespace {

constexpr std::uint64_t kMostUnpacked = 1 << 20;

template <typename T>
bool IsRead(const absl::StatusOr<T>& read) {
  ASHLAR_CHECK(read.ok() || !read.status().message().empty());
  return read.ok();
}

void CheckUnpacked(absl::string_view bytes) {
  const absl::StatusOr<std::string> whole = ashlar::formats::Unpack(bytes, kMostUnpacked);
  if (IsRead(whole)) ASHLAR_CHECK(whole->size() <= kMostUnpacked);
}

void CheckRequests(absl::string_view bytes) {
  const auto read = ashlar::formats::ReadChromeTrace(bytes);
  if (!IsRead(read)) return;
  for (const ashlar::trace::Op& op : read->requests) ASHLAR_CHECK(op.id < read->id_count);
}

void CheckProfile(absl::string_view bytes) {
  const auto read = ashlar::formats::ReadMemoryProfile(bytes);
  if (!IsRead(read)) return;
  std::uint64_t end = 0;
  int device = 0;
  for (const auto& segment : read->segments) {
    ASHLAR_CHECK(segment.device >= device && segment.size_bytes > 0 && segment.blocks.size() == 1);
    ASHLAR_CHECK(segment.device > device || segment.address >= end);
    device = segment.device;
    end = segment.address + segment.size_bytes;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  ashlar::formats::Sniff(bytes);
  CheckUnpacked(bytes);
  CheckRequests(bytes);
  CheckProfile(bytes);
  IsRead(ashlar::formats::ReadJsonSnapshot(bytes));
  return 0;
}
