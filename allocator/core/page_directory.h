// Finds the arena that handed an address out: a table of five levels over pages of 2 MiB, the size of the smallest
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
#include <numeric>
#include <type_traits>

#include "allocator/core/arena.h"

namespace ashlar::core {

class PageDirectory {
 public:
  // nullptr where there is no hint.
  Arena* Find(std::uint64_t address) const { return address >> kAddressBits == 0 ? FindIn(top_, address) : nullptr; }

  // Blocks of the arena will be in [begin, end). Of arenas that share a page the last to enter stays.
  void Enter(std::uint64_t begin, std::uint64_t end, Arena* arena) {
    ForEachPage(begin, end, [&](std::uint64_t page) { EntryOf(top_, page).store(arena, std::memory_order_release); });
  }

  // The arena has no block in [begin, end) any more.
  void Leave(std::uint64_t begin, std::uint64_t end, const Arena* arena) {
    ForEachPage(begin, end, [&](std::uint64_t page) {
      if (Find(page) == arena) EntryOf(top_, page).store(nullptr, std::memory_order_release);
    });
  }

 private:
  static constexpr int kPageBits = 21;
  // The pages of a table at each level: small tables, since streams may be far apart, and each has its own then.
  static constexpr std::array<int, 5> kBits = {5, 5, 5, 6, 6};
  static constexpr int BitsBelow(std::size_t level) {
    return std::accumulate(kBits.begin(), kBits.begin() + level, kPageBits);
  }
  static constexpr int kAddressBits = std::accumulate(kBits.begin(), kBits.end(), kPageBits);

  template <std::size_t level>
  struct Table {
    using Below = std::conditional_t<level == 0, Arena, Table<level == 0 ? 0 : level - 1>>;
    ~Table() {
      if constexpr (level > 0) {
        for (std::atomic<Below*>& below : at) delete below.load(std::memory_order_relaxed);
      }
    }
    std::atomic<Below*>& operator[](std::uint64_t address) {
      return at[address >> BitsBelow(level) & ((std::uint64_t{1} << kBits[level]) - 1)];
    }
    const std::atomic<Below*>& operator[](std::uint64_t address) const { return const_cast<Table&>(*this)[address]; }

    std::array<std::atomic<Below*>, std::size_t{1} << kBits[level]> at{};
  };
  using Top = Table<kBits.size() - 1>;

  template <std::size_t level>
  static Arena* FindIn(const Table<level>& table, std::uint64_t address) {
    auto* below = table[address].load(std::memory_order_acquire);
    if constexpr (level == 0) {
      return below;
    } else {
      return below == nullptr ? nullptr : FindIn(*below, address);
    }
  }
  // Makes the tables on the way.
  template <std::size_t level>
  static std::atomic<Arena*>& EntryOf(Table<level>& table, std::uint64_t address) {
    if constexpr (level == 0) {
      return table[address];
    } else {
      std::atomic<Table<level - 1>*>& entry = table[address];
      if (entry.load(std::memory_order_relaxed) == nullptr) {
        entry.store(new Table<level - 1>(), std::memory_order_release);
      }
      return EntryOf(*entry.load(std::memory_order_relaxed), address);
    }
  }
  // One address of each, as far as there is room for them.
  template <typename Visit>
  static void ForEachPage(std::uint64_t begin, std::uint64_t end, Visit visit) {
    constexpr std::uint64_t kPageBytes = std::uint64_t{1} << kPageBits;
    const std::uint64_t last = std::min(end, std::uint64_t{1} << kAddressBits);
    for (std::uint64_t page = begin & ~(kPageBytes - 1); page < last; page += kPageBytes) visit(page);
  }
  Top top_{};
};

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_PAGE_DIRECTORY_H_
