// Ranges that somebody else uses as they are (policy/registered_ranges.h): what the allocator refuses and tells of
// them.
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "allocator/core/caching_allocator.h"
#include "allocator/core/state.h"

namespace ashlar::core {

absl::Status CachingAllocator::RegisterRange(std::uint64_t address, std::uint64_t size_bytes) {
  const ExclusiveSection section(caches());
  const policy::Segment* const segment = SegmentAt(ledger_.heap(), address);
  if (size_bytes == 0 || segment == nullptr || size_bytes > segment->address + segment->size_bytes - address) {
    return absl::InvalidArgumentError(absl::StrCat("RegisterRange: ", FormatBytes(size_bytes), " at 0x",
                                                   absl::Hex(address), " do not lie in one segment of this allocator"));
  }
  if (absl::Status status = CheckAwake(segment->lane->pool->pair, "RegisterRange"); !status.ok()) return status;
  ledger_.heap().registered().Add({address, size_bytes});
  ledger_.Note(trace::fact::RangeRegistered{address, size_bytes});
  if (segment->is_expandable) failures_.TellExpandableRegistered(size_bytes);
  return absl::OkStatus();
}

absl::Status CachingAllocator::UnregisterRange(std::uint64_t address) {
  const ExclusiveSection section(caches());
  if (!ledger_.heap().registered().Remove(address)) {
    return absl::InvalidArgumentError(
        absl::StrCat("UnregisterRange: no registered range begins at 0x", absl::Hex(address)));
  }
  ledger_.Note(trace::fact::RangeUnregistered{address});
  return absl::OkStatus();
}

}  // namespace ashlar::core
