// Finds the arena that handed an address out: a three-level table over pages of 2 MiB, the size of the smallest
// segment. An entry is a hint: it may be missing (an address above 2^48, a page that two arenas share) and it may be
// out of date, so who asks looks in the arena, and in the segments if it is not there. It never names an arena that is
// gone. Thread rule: Find under any desk's lock, by any number of threads; the rest in the exclusive section.
#ifndef ASHLAR_ALLOCATOR_CORE_PAGE_DIRECTORY_H_
#define ASHLAR_ALLOCATOR_CORE_PAGE_DIRECTORY_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "allocator/core/arena.h"

namespace ashlar::core {

class PageDirectory {
 public:
  // nullptr where there is no hint.
  Arena* Find(std::uint64_t address) const {
    if (address >> kAddressBits != 0) return nullptr;
    const Middle* middle = top_[At(address, 2)].load(std::memory_order_acquire);
    const Leaf* leaf = middle == nullptr ? nullptr : middle->at[At(address, 1)].load(std::memory_order_acquire);
    return leaf == nullptr ? nullptr : leaf->at[At(address, 0)].load(std::memory_order_acquire);
  }

  // Blocks of the arena will be in [begin, end). Of arenas that share a page the last to enter stays.
  void Enter(std::uint64_t begin, std::uint64_t end, Arena* arena) {
    ForEachPage(begin, end, [&](std::uint64_t page) {
      Leaf& leaf = Made(Made(top_[At(page, 2)]).at[At(page, 1)]);
      leaf.at[At(page, 0)].store(arena, std::memory_order_release);
    });
  }

  // The arena has no block in [begin, end) any more.
  void Leave(std::uint64_t begin, std::uint64_t end, const Arena* arena) {
    ForEachPage(begin, end, [&](std::uint64_t page) {
      if (Find(page) == arena) Made(Made(top_[At(page, 2)]).at[At(page, 1)]).at[At(page, 0)].store(nullptr);
    });
  }

 private:
  static constexpr int kPageBits = 21;
  static constexpr int kLevelBits = 9;  // 4 KiB a table: streams may be far apart
  static constexpr int kAddressBits = kPageBits + 3 * kLevelBits;
  template <typename T>
  using Entries = std::array<std::atomic<T*>, std::size_t{1} << kLevelBits>;

  struct Leaf {
    Entries<Arena> at{};
  };
  struct Middle {
    ~Middle() {
      for (std::atomic<Leaf*>& leaf : at) delete leaf.load(std::memory_order_relaxed);
    }
    Entries<Leaf> at{};
  };
  struct Top : Entries<Middle> {
    ~Top() {
      for (std::atomic<Middle*>& middle : *this) delete middle.load(std::memory_order_relaxed);
    }
  };

  static std::size_t At(std::uint64_t address, int level) {
    return address >> (kPageBits + level * kLevelBits) & ((std::uint64_t{1} << kLevelBits) - 1);
  }
  // One address of each, as far as there is room for them.
  template <typename Visit>
  static void ForEachPage(std::uint64_t begin, std::uint64_t end, Visit visit) {
    constexpr std::uint64_t kPageBytes = std::uint64_t{1} << kPageBits;
    const std::uint64_t last = std::min(end, std::uint64_t{1} << kAddressBits);
    for (std::uint64_t page = begin & ~(kPageBytes - 1); page < last; page += kPageBytes) visit(page);
  }
  template <typename T>
  static T& Made(std::atomic<T*>& entry) {
    T* table = entry.load(std::memory_order_relaxed);
    if (table == nullptr) {
      table = new T();
      entry.store(table, std::memory_order_release);
    }
    return *table;
  }

  Top top_{};
};

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_PAGE_DIRECTORY_H_
