// Finds a live block by its address: open addressing, linear probing, at most three eighths full. A slot is one word, a
// block's address without its six zero bits and 22 bits of the hash, so that a lookup reads one cache line of the table
// and the block itself. Addresses may be any. Not thread-safe.
#ifndef ASHLAR_ALLOCATOR_CORE_POINTER_MAP_H_
#define ASHLAR_ALLOCATOR_CORE_POINTER_MAP_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "allocator/base/check.h"
#include "allocator/base/huge_array.h"
#include "allocator/policy/block.h"

namespace ashlar::core {

class PointerMap {
 public:
  PointerMap() { Grow(kFirstSlots); }

  // A block at the same address is replaced.
  void Insert(policy::Block* block) {
    if (8 * (size_ + 1) > 3 * (mask_ + 1)) Grow(2 * (mask_ + 1));
    const std::uint64_t hash = HashOf(block->address);
    const std::size_t i = IndexOf(block->address, hash);
    size_ += slots_[i] == 0;
    slots_[i] = SlotOf(block, hash);
  }

  // Where a block that was found lies, until the next change.
  struct Found {
    policy::Block* block = nullptr;  // nullptr when there is none
    std::size_t index = 0;
  };
  Found Find(std::uint64_t address) const {
    const std::size_t i = IndexOf(address, HashOf(address));
    return {slots_[i] == 0 ? nullptr : BlockOf(slots_[i]), i};
  }
  void Erase(const Found& found) { EraseAt(found.index); }

  // Removes and returns the block that begins at `address`; nullptr when there is none.
  policy::Block* Take(std::uint64_t address) {
    const std::size_t i = IndexOf(address, HashOf(address));
    if (slots_[i] == 0) return nullptr;
    policy::Block* block = BlockOf(slots_[i]);
    EraseAt(i);
    return block;
  }

  // Brings the slot of `address` nearer.
  void Prefetch(std::uint64_t address) const { __builtin_prefetch(slots_.get() + (HashOf(address) & mask_)); }

  // In no order; `visit` must not change the map.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (std::size_t i = 0; i <= mask_; ++i) {
      if (slots_[i] != 0) visit(BlockOf(slots_[i]));
    }
  }

  std::size_t size() const { return size_; }
  std::size_t slot_count() const { return mask_ + 1; }

 private:
  static constexpr std::size_t kFirstSlots = 16;
  static constexpr int kHashBits = 22;  // the rest of a slot; 64-byte blocks below 2^48
  static constexpr std::uint64_t kHashMask = (std::uint64_t{1} << kHashBits) - 1;
  static_assert(alignof(policy::Block) == 64);

  static std::uint64_t HashOf(std::uint64_t address) { return (address * 0x9e3779b97f4a7c15u) >> 24; }
  static std::uint64_t SlotOf(const policy::Block* block, std::uint64_t hash) {
    const auto at = reinterpret_cast<std::uint64_t>(block);
    ASHLAR_CHECK(at >> 48 == 0);
    return at << (kHashBits - 6) | (hash & kHashMask);
  }
  static policy::Block* BlockOf(std::uint64_t slot) { return reinterpret_cast<policy::Block*>(slot >> kHashBits << 6); }
  static bool Matches(std::uint64_t slot, std::uint64_t hash) { return ((slot ^ hash) & kHashMask) == 0; }

  // Of the slot that holds the address, or of the empty one where the search ends.
  std::size_t IndexOf(std::uint64_t address, std::uint64_t hash) const {
    std::size_t i = hash & mask_;
    // Whether the first place is another's is chance: the second is taken without a branch.
    const std::size_t is_taken = slots_[i] != 0;
    const std::size_t is_others = !Matches(slots_[i], hash);
    i = (i + (is_taken & is_others)) & mask_;
    for (; slots_[i] != 0; i = (i + 1) & mask_) {
      if (Matches(slots_[i], hash) && BlockOf(slots_[i])->address == address) break;
    }
    return i;
  }

  // How far the slot at `i` lies behind the place where its search begins.
  std::size_t DistanceAt(std::size_t i) const { return (i - slots_[i]) & mask_ & kHashMask; }

  // Moves later slots of the same run back, so that no search ends too early.
  void EraseAt(std::size_t hole) {
    --size_;
    for (std::size_t i = (hole + 1) & mask_; slots_[i] != 0; i = (i + 1) & mask_) {
      if (DistanceAt(i) < ((i - hole) & mask_)) continue;
      slots_[hole] = slots_[i];
      hole = i;
    }
    slots_[hole] = 0;
  }

  void Grow(std::size_t count) {
    HugeArray<std::uint64_t> slots(count);
    std::fill_n(slots.get(), count, 0);
    const std::size_t mask = count - 1;
    for (std::size_t i = 0; slots_.get() != nullptr && i <= mask_; ++i) {
      if (slots_[i] == 0) continue;
      const std::uint64_t hash = HashOf(BlockOf(slots_[i])->address);
      std::size_t to = hash & mask;
      while (slots[to] != 0) to = (to + 1) & mask;
      slots[to] = slots_[i];
    }
    slots_ = std::move(slots);
    mask_ = mask;
  }

  HugeArray<std::uint64_t> slots_;
  std::size_t mask_ = 0;
  std::size_t size_ = 0;
};

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_POINTER_MAP_H_
