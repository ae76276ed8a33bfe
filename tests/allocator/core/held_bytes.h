// Counts what a heap holds of its device, from its blocks.
#ifndef ASHLAR_TESTS_ALLOCATOR_CORE_HELD_BYTES_H_
#define ASHLAR_TESTS_ALLOCATOR_CORE_HELD_BYTES_H_

#include <cstdint>

#include "allocator/policy/heap.h"

namespace ashlar::core {

inline std::uint64_t HeldBytes(const policy::Heap& heap, std::uint64_t granularity_bytes = 2 * kMiB) {
  std::uint64_t held = 0;
  for (const auto& [address, segment] : heap.segments()) {
    if (!segment->is_expandable) held += RoundUp(segment->size_bytes, granularity_bytes);
    for (const policy::Block* block = segment->first; segment->is_expandable && block != nullptr; block = block->next) {
      if (block->state != policy::BlockUse::kUnmapped) held += block->size_bytes;
    }
  }
  return held;
}

}  // namespace ashlar::core

#endif  // ASHLAR_TESTS_ALLOCATOR_CORE_HELD_BYTES_H_
