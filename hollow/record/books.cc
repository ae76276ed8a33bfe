#include "hollow/record/books.h"

namespace ashlar::record {

void Books::Allocate(const Holding& holding, std::uint64_t address) { by_address_[address] = holding; }

std::optional<Books::Holding> Books::Free(std::uint64_t address) {
  const auto found = by_address_.find(address);
  if (found == by_address_.end()) return std::nullopt;
  const Holding holding = found->second;
  by_address_.erase(found);
  return holding;
}

void Books::Create(const Holding& holding, std::uint64_t handle) { by_handle_[handle] = holding; }

void Books::Map(std::uint64_t handle, std::uint64_t bytes, std::uint64_t address) {
  const auto found = by_handle_.find(handle);
  if (found == by_handle_.end()) return;
  Holding holding = found->second;
  holding.bytes = bytes;
  Allocate(holding, address);
}

void Books::Unmap(std::uint64_t address, std::uint64_t bytes) {
  by_address_.erase(by_address_.lower_bound(address), by_address_.lower_bound(address + bytes));
}

void Books::Reset(int device) {
  std::erase_if(by_address_, [&](const auto& entry) { return entry.second.device == device; });
}

std::map<std::string_view, Books::Held> Books::Of(int device) const {
  std::map<std::string_view, Held> out;
  for (const auto& [address, holding] : by_address_) {
    if (holding.device != device) continue;
    Held& of = out[holding.file];
    of.bytes += holding.bytes;
    of.blocks += 1;
  }
  return out;
}

}  // namespace ashlar::record
