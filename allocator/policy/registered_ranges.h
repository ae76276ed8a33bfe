// Ranges of addresses that somebody else uses as they are: a communication library, a network card, another process
// (Allocator::RegisterRange). What is free in them is not given back to the device.
//
//   RegisteredRanges registered;
//   registered.Add({0x7000'0000, 64 * kMiB});
//   registered.Touches({block->address, block->size_bytes});
//   registered.Remove(0x7000'0000);
//
// Ranges may overlap, as a library may register a buffer twice. Each question looks at all that begin below its end:
// they are few.
#ifndef ASHLAR_ALLOCATOR_POLICY_REGISTERED_RANGES_H_
#define ASHLAR_ALLOCATOR_POLICY_REGISTERED_RANGES_H_

#include <cstdint>
#include <map>
#include <vector>

#include "allocator/policy/address_range.h"

namespace ashlar::policy {

class RegisteredRanges {
 public:
  bool empty() const { return sizes_.empty(); }
  void Add(const AddressRange& range) { sizes_.emplace(range.address, range.size_bytes); }
  // The youngest that begins at this address; false: none does.
  bool Remove(std::uint64_t address);
  // How often one was removed.
  std::uint64_t removed() const { return removed_; }
  // Whether a byte of the range is registered.
  bool Touches(const AddressRange& range) const;
  // The pages of which no byte is.
  std::vector<PageRun> PagesBeside(const std::vector<PageRun>& runs) const;
  // By address; of one address in the order in which they came.
  std::vector<AddressRange> All() const;

 private:
  std::multimap<std::uint64_t, std::uint64_t> sizes_;  // by address
  std::uint64_t removed_ = 0;
};

}  // namespace ashlar::policy

#endif  // ASHLAR_ALLOCATOR_POLICY_REGISTERED_RANGES_H_
