// Finds a live block by its address: lines of eight slots, at most half full. A slot is one word, a block's address
// without its six zero bits and 22 bits of the hash:
//
//   line   | block a, tag | block b, tag | - | block c, tag | - | - | - | - |       a cache line; in no order
//
// All slots of a line are looked at at once, without a branch: a lookup reads one cache line of the table and the
// block itself. What finds its line full is in the next that is not. Addresses may be any. Not thread-safe.
#ifndef ASHLAR_ALLOCATOR_CORE_POINTER_MAP_H_
#define ASHLAR_ALLOCATOR_CORE_POINTER_MAP_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "allocator/base/check.h"
#include "allocator/base/huge_array.h"
#include "allocator/policy/block.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace ashlar::core {

class PointerMap {
 public:
  PointerMap() { Grow(kFirstLines); }

  // No block is there at the same address.
  void Insert(policy::Block* block) {
    if (2 * (size_ + 1) > slot_count()) [[unlikely]]
      Grow(2 * (line_mask_ + 1));
    const std::uint64_t hash = HashOf(block->address);
    slots_[FirstEmpty(LineOf(hash))] = SlotOf(block, hash);
    ++size_;
  }

  // Where a block that was found lies, until the next change.
  struct Found {
    policy::Block* block = nullptr;  // nullptr when there is none
    std::size_t index = 0;
  };
  Found Find(std::uint64_t address) const {
    const std::uint64_t hash = HashOf(address);
    const std::uint32_t tag = TagOf(hash);
    for (std::size_t line = LineOf(hash);; line = (line + 1) & line_mask_) {
      for (std::uint32_t same = Matching(line, tag); same != 0; same &= same - 1) {
        const std::size_t i = kLineSlots * line + static_cast<std::size_t>(std::countr_zero(same));
        policy::Block* block = BlockOf(slots_[i]);
        if (block->address == address) [[likely]]
          return {block, i};
      }
      if (Empty(line) != 0) [[likely]]
        return {};
    }
  }
  void Erase(const Found& found) {
    --size_;
    const bool was_full = Empty(found.index / kLineSlots) == 0;
    slots_[found.index] = 0;
    if (was_full) [[unlikely]]
      FillHole(found.index);
  }

  // Removes and returns the block that begins at `address`; nullptr when there is none.
  policy::Block* Take(std::uint64_t address) {
    const Found found = Find(address);
    if (found.block != nullptr) Erase(found);
    return found.block;
  }

  // Brings the line of `address` nearer.
  void Prefetch(std::uint64_t address) const {
    __builtin_prefetch(slots_.get() + kLineSlots * LineOf(HashOf(address)), 1);
  }

  // In no order; `visit` must not change the map.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (std::size_t i = 0; i < slot_count(); ++i) {
      if (slots_[i] != 0) visit(BlockOf(slots_[i]));
    }
  }

  std::size_t size() const { return size_; }
  std::size_t slot_count() const { return kLineSlots * (line_mask_ + 1); }

 private:
  static constexpr std::size_t kFirstLines = 2;
  static constexpr std::size_t kLineSlots = 8;
  static constexpr int kTagBits = 22;  // the rest of a slot; 64-byte blocks below 2^48
  static constexpr std::uint32_t kTagMask = (std::uint32_t{1} << kTagBits) - 1;
  static_assert(alignof(policy::Block) == 64);

  static std::uint64_t HashOf(std::uint64_t address) {
    const std::uint64_t product = address * 0x9e3779b97f4a7c15u;
    return product ^ product >> 32;  // the line is in the low bits, the tag in the high ones
  }
  std::size_t LineOf(std::uint64_t hash) const { return hash & line_mask_; }
  // Never 0, which is an empty slot's.
  static std::uint32_t TagOf(std::uint64_t hash) { return static_cast<std::uint32_t>(hash >> (64 - kTagBits)) | 1; }
  static std::uint64_t SlotOf(const policy::Block* block, std::uint64_t hash) {
    const auto at = reinterpret_cast<std::uint64_t>(block);
    ASHLAR_CHECK(at >> 48 == 0);
    return at << (kTagBits - 6) | TagOf(hash);
  }
  static policy::Block* BlockOf(std::uint64_t slot) { return reinterpret_cast<policy::Block*>(slot >> kTagBits << 6); }

  // Bit i: the line's slot i has this tag.
  std::uint32_t Matching(std::size_t line, std::uint32_t tag) const {
#if defined(__SSE2__)
    const __m128i mask = _mm_set1_epi32(static_cast<int>(kTagMask));
    const __m128i tags = _mm_set1_epi32(static_cast<int>(tag));
    return BitsOf(_mm_cmpeq_epi32(_mm_and_si128(LowWords(line, 0), mask), tags),
                  _mm_cmpeq_epi32(_mm_and_si128(LowWords(line, 4), mask), tags));
#else
    return BitsOf(line, [tag](std::uint64_t slot) { return (slot & kTagMask) == tag; });
#endif
  }
  // Bit i: the line's slot i is empty. The low half of a slot that is not has a tag.
  std::uint32_t Empty(std::size_t line) const {
#if defined(__SSE2__)
    const __m128i zero = _mm_setzero_si128();
    return BitsOf(_mm_cmpeq_epi32(LowWords(line, 0), zero), _mm_cmpeq_epi32(LowWords(line, 4), zero));
#else
    return BitsOf(line, [](std::uint64_t slot) { return slot == 0; });
#endif
  }
#if defined(__SSE2__)
  // The low halves of four slots.
  __m128i LowWords(std::size_t line, std::size_t first) const {
    const auto* slots = reinterpret_cast<const float*>(slots_.get() + kLineSlots * line + first);
    return _mm_castps_si128(_mm_shuffle_ps(_mm_load_ps(slots), _mm_load_ps(slots + 4), _MM_SHUFFLE(2, 0, 2, 0)));
  }
  static std::uint32_t BitsOf(__m128i low, __m128i high) {
    return static_cast<std::uint32_t>(_mm_movemask_ps(_mm_castsi128_ps(low)) | _mm_movemask_ps(_mm_castsi128_ps(high))
                                                                                   << 4);
  }
#else
  template <typename Is>
  std::uint32_t BitsOf(std::size_t line, Is is) const {
    std::uint32_t out = 0;
    for (std::size_t i = 0; i < kLineSlots; ++i) out |= std::uint32_t{is(slots_[kLineSlots * line + i])} << i;
    return out;
  }
#endif

  std::size_t FirstEmpty(std::size_t line) const {
    std::uint32_t empty = Empty(line);
    while (empty == 0) [[unlikely]] {
      line = (line + 1) & line_mask_;
      empty = Empty(line);
    }
    return kLineSlots * line + static_cast<std::size_t>(std::countr_zero(empty));
  }

  // The hole's line was full: what would be there, had it been empty, comes back from the lines behind it, so that no
  // search ends too early.
  [[gnu::noinline]] void FillHole(std::size_t hole) {
    bool is_full = true;
    for (std::size_t line = hole / kLineSlots; is_full;) {
      line = (line + 1) & line_mask_;
      is_full = Empty(line) == 0;
      for (std::size_t i = kLineSlots * line; i < kLineSlots * (line + 1); ++i) {
        if (slots_[i] == 0) continue;
        const std::size_t home = LineOf(HashOf(BlockOf(slots_[i])->address));
        if (((line - home) & line_mask_) < ((line - hole / kLineSlots) & line_mask_)) continue;
        slots_[hole] = std::exchange(slots_[i], 0);
        hole = i;
        break;
      }
    }
  }

  void Grow(std::size_t lines) {
    const HugeArray<std::uint64_t> old = std::exchange(slots_, HugeArray<std::uint64_t>(kLineSlots * lines));
    const std::size_t old_slots = old.get() == nullptr ? 0 : slot_count();
    std::fill_n(slots_.get(), kLineSlots * lines, 0);
    line_mask_ = lines - 1;
    for (std::size_t i = 0; i < old_slots; ++i) {
      if (old[i] != 0) slots_[FirstEmpty(LineOf(HashOf(BlockOf(old[i])->address)))] = old[i];
    }
  }

  HugeArray<std::uint64_t> slots_;
  std::size_t line_mask_ = 0;
  std::size_t size_ = 0;
};

}  // namespace ashlar::core

#endif  // ASHLAR_ALLOCATOR_CORE_POINTER_MAP_H_
