// Finds the arena that handed an address out: a two-level table over pages of 2 MiB, the size of the smallest segment.
// An entry is a hint: it may be missing (an address above 2^48, a page that two arenas share) and it may be out of
// date, so who asks looks in the arena, and in the segments if it is not there. It never names an arena that is gone.
// Thread rule: Find under any desk's lock, by any number of threads; the rest in the exclusive section.
#ifndef ASHLAR_ALLOCATOR_CORE_PAGE_DIRECTORY_H_
#define ASHLAR_ALLOCATOR_CORE_PAGE_DIRECTORY_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "allocator/core/arena.h"

namespace ashlar::core {

class PageDirectory {
 public:
  PageDirectory() : leaves_(new std::array<std::atomic<Leaf*>, kLeaves>()) {}
  ~PageDirectory() {
    for (std::atomic<Leaf*>& leaf : *leaves_) delete leaf.load(std::memory_order_relaxed);
  }
  PageDirectory(const PageDirectory&) = delete;
  PageDirectory& operator=(const PageDirectory&) = delete;

  // nullptr where there is no hint.
  Arena* Find(std::uint64_t address) const {
    const std::uint64_t page = address >> kPageBits;
    if (page >= kLeaves * kLeafPages) return nullptr;
    const Leaf* leaf = (*leaves_)[page / kLeafPages].load(std::memory_order_acquire);
    return leaf == nullptr ? nullptr : (*leaf)[page % kLeafPages].load(std::memory_order_acquire);
  }

  // Blocks of the arena will be in [begin, end). Of arenas that share a page the last to enter stays.
  void Enter(std::uint64_t begin, std::uint64_t end, Arena* arena) {
    for (std::uint64_t page = begin >> kPageBits; page <= LastPage(end); ++page) {
      LeafOf(page)[page % kLeafPages].store(arena, std::memory_order_release);
    }
  }

  // The arena has no block in [begin, end) any more.
  void Leave(std::uint64_t begin, std::uint64_t end, const Arena* arena) {
    for (std::uint64_t page = begin >> kPageBits; page <= LastPage(end); ++page) {
      Leaf* leaf = (*leaves_)[page / kLeafPages].load(std::memory_order_relaxed);
      if (leaf == nullptr) {
        page |= kLeafPages - 1;
        continue;
      }
      std::atomic<Arena*>& entry = (*leaf)[page % kLeafPages];
      if (entry.load(std::memory_order_relaxed) == arena) entry.store(nullptr, std::memory_order_relaxed);
    }
  }

 private:
  static constexpr int kPageBits = 21;
  static constexpr std::uint64_t kLeafPages = 8192;  // 16 GiB of addresses
  static constexpr std::uint64_t kLeaves = 16384;    // 2^48 bytes of addresses
  using Leaf = std::array<std::atomic<Arena*>, kLeafPages>;

  // That there is room for.
  static std::uint64_t LastPage(std::uint64_t end) {
    return std::min((end - 1) >> kPageBits, kLeaves * kLeafPages - 1);
  }
  Leaf& LeafOf(std::uint64_t page) {
    std::atomic<Leaf*>& entry = (*leaves_)[page / kLeafPages];
    Leaf* leaf = entry.load(std::memory_order_relaxed);
    if (leaf == nullptr) {
      leaf = new Leaf();
      entry.store(leaf, std::memory_order_release);
    }
    return *leaf;
  }

  std::unique_ptr<std::array<std::atomic<Leaf*>, kLeaves>> leaves_;
};

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_PAGE_DIRECTORY_H_
