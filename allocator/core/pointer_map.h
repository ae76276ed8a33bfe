// From the address of a live block to the block: the pointer lookup, behind an interface narrow enough to be replaced
// (docs/performance.md has what a faster one costs).
#ifndef ASHLAR_ALLOCATOR_CORE_POINTER_MAP_H_
#define ASHLAR_ALLOCATOR_CORE_POINTER_MAP_H_

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "allocator/policy/block.h"

namespace ashlar::core {

class PointerMap {
 public:
  void Insert(policy::Block* block) { blocks_[block->address] = block; }

  // nullptr when there is none.
  policy::Block* Find(std::uint64_t address) const {
    const auto it = blocks_.find(address);
    return it == blocks_.end() ? nullptr : it->second;
  }

  // Removes and returns the block that begins at `address`; nullptr when there is none.
  policy::Block* Take(std::uint64_t address) {
    const auto it = blocks_.find(address);
    if (it == blocks_.end()) return nullptr;
    policy::Block* block = it->second;
    blocks_.erase(it);
    return block;
  }

  std::size_t size() const { return blocks_.size(); }

 private:
  absl::flat_hash_map<std::uint64_t, policy::Block*> blocks_;
};

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_POINTER_MAP_H_
