#include "hollow/books/allocations.h"

#include <algorithm>
#include <iterator>

namespace ashlar::hollow {

void Allocations::Add(Allocation allocation) {
  allocation.id = next_id_++;
  if (allocation.is_on_host()) {
    pinned_bytes_ += allocation.size_bytes;
    pinned_peak_bytes_ = std::max(pinned_peak_bytes_, pinned_bytes_);
  }
  by_address_.insert_or_assign(allocation.address, allocation);
}

const Allocation* Allocations::At(std::uint64_t address) const {
  const auto it = by_address_.find(address);
  return it == by_address_.end() ? nullptr : &it->second;
}

const Allocation* Allocations::Holding(std::uint64_t address) const {
  auto it = by_address_.upper_bound(address);
  if (it == by_address_.begin()) return nullptr;
  --it;
  return address - it->first < std::max<std::uint64_t>(it->second.size_bytes, 1) ? &it->second : nullptr;
}

void Allocations::Remove(std::uint64_t address) {
  const auto it = by_address_.find(address);
  if (it == by_address_.end()) return;
  if (it->second.is_on_host()) pinned_bytes_ -= it->second.size_bytes;
  by_address_.erase(it);
}

void Allocations::RemoveOfDevice(int device) {
  std::erase_if(by_address_,
                [&](const auto& entry) { return entry.second.device == device && !entry.second.is_on_host(); });
}

}  // namespace ashlar::hollow
