// The arenas of an allocator by (pool, stream): open addressing, at most half full; what goes leaves no trace.
// Thread rule: Find under any desk's lock, the rest in the exclusive section.
#ifndef ASHLAR_ALLOCATOR_CORE_ARENA_TABLE_H_
#define ASHLAR_ALLOCATOR_CORE_ARENA_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "allocator/core/arena.h"

namespace ashlar::core {

class ArenaTable {
 public:
  // nullptr when there is none.
  Arena* Find(const ArenaKey& key) const { return slots_[IndexOf(key)].get(); }

  // Lies on the desk if it is new.
  Arena& FindOrAdd(const ArenaKey& key, Desk& desk, const FastPath* owner) {
    if (Arena* arena = Find(key); arena != nullptr) return *arena;
    if (2 * ++size_ > slots_.size()) Resize(2 * slots_.size());
    std::unique_ptr<Arena>& slot = slots_[IndexOf(key)];
    slot = std::make_unique<Arena>(key, desk, owner);
    return *slot;
  }

  // Moves later slots of the same run back, so that no search ends too early.
  void Erase(const Arena& arena) {
    std::size_t hole = IndexOf(arena.key);
    slots_[hole] = nullptr;
    for (std::size_t i = Next(hole); slots_[i] != nullptr; i = Next(i)) {
      const std::size_t distance = (i - HashOf(slots_[i]->key)) & Mask();
      if (distance < ((i - hole) & Mask())) continue;
      slots_[hole] = std::move(slots_[i]);
      hole = i;
    }
    --size_;
    if (slots_.size() > kFirstSlots && 8 * size_ < slots_.size()) Resize(slots_.size() / 2);
  }

  std::size_t size() const { return size_; }

 private:
  static constexpr std::size_t kFirstSlots = 16;

  static std::size_t HashOf(const ArenaKey& key) {
    std::uint64_t hash = Handle(key.stream);
    hash ^= (key.pool.first * 0x9e3779b97f4a7c15u) ^ (key.pool.second * 0xc2b2ae3d27d4eb4fu);
    hash *= 0x9e3779b97f4a7c15u;
    return static_cast<std::size_t>(hash >> 32);
  }
  std::size_t Mask() const { return slots_.size() - 1; }
  std::size_t Next(std::size_t i) const { return (i + 1) & Mask(); }

  // Of the slot that holds it, or of the empty one where the search ends.
  std::size_t IndexOf(const ArenaKey& key) const {
    std::size_t i = HashOf(key) & Mask();
    while (slots_[i] != nullptr && !(slots_[i]->key == key)) i = Next(i);
    return i;
  }

  void Resize(std::size_t count) {
    std::vector<std::unique_ptr<Arena>> old(count);
    old.swap(slots_);
    for (std::unique_ptr<Arena>& arena : old) {
      if (arena != nullptr) slots_[IndexOf(arena->key)] = std::move(arena);
    }
  }

  std::vector<std::unique_ptr<Arena>> slots_ = std::vector<std::unique_ptr<Arena>>(kFirstSlots);
  std::size_t size_ = 0;
};

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_ARENA_TABLE_H_
