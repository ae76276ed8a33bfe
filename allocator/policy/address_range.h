// Ranges of addresses, and pages of them. Plain values; sizes are bytes.
#ifndef ASHLAR_ALLOCATOR_POLICY_ADDRESS_RANGE_H_
#define ASHLAR_ALLOCATOR_POLICY_ADDRESS_RANGE_H_

#include <cstdint>

namespace ashlar::policy {

struct AddressRange {
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;

  std::uint64_t End() const { return address + size_bytes; }
};

// Mapped pages of one size that follow each other.
struct PageRun {
  AddressRange range;
  std::uint64_t page_bytes = 0;
};

}  // namespace ashlar::policy

#endif  // ASHLAR_ALLOCATOR_POLICY_ADDRESS_RANGE_H_
