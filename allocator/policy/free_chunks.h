// The entries of one bin of a FreeIndex that its line has no room for: a list of chunks, descending, so that the least
// is at the very back and leaves or comes without moving anything.
//
//   chunks_    | 90 81 77 | 64 60 |  ...  | 31 20 12 |      each knows its greatest entry without being read
//
// Not thread-safe.
#ifndef ASHLAR_ALLOCATOR_POLICY_FREE_CHUNKS_H_
#define ASHLAR_ALLOCATOR_POLICY_FREE_CHUNKS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "allocator/policy/block.h"

namespace ashlar::policy {

// A free block and the number that says most of its place in the order; where two numbers are equal the blocks decide.
struct FreeEntry {
  std::uint64_t key;
  Block* block;
};

inline bool IsBefore(const Block& a, const Block& b) {
  if (a.size_bytes != b.size_bytes) return a.size_bytes < b.size_bytes;
  return a.rank != b.rank ? a.rank < b.rank : a.address < b.address;
}
inline bool IsBefore(const FreeEntry& a, const FreeEntry& b) {
  bool is_before = a.key < b.key;
  if (a.key == b.key) [[unlikely]]
    is_before = IsBefore(*a.block, *b.block);
  return is_before;
}

class FreeChunks {
 public:
  bool empty() const { return chunks_.empty(); }
  // Only of what is not empty.
  const FreeEntry& least() const { return chunks_.back().entries.back(); }
  const FreeEntry& greatest() const { return chunks_.front().greatest; }

  void Insert(const FreeEntry& entry);
  // False when it is not there.
  bool Erase(const FreeEntry& entry);
  FreeEntry PopLeast();
  // `is_wanted` is true of an entry and all greater ones, or of none: the least of them, nullptr if there is none.
  template <typename IsWanted>
  const FreeEntry* LeastOf(IsWanted is_wanted) const {
    const Position at = Count(is_wanted);
    return at.count == 0 ? nullptr : &chunks_[at.chunk].entries[at.count - 1];
  }
  // The greatest of which it is not true.
  template <typename IsWanted>
  const FreeEntry* GreatestBut(IsWanted is_wanted) const {
    const Position at = Count(is_wanted);
    if (chunks_.empty()) return nullptr;
    if (at.count < chunks_[at.chunk].entries.size()) return &chunks_[at.chunk].entries[at.count];
    return at.chunk + 1 < chunks_.size() ? &chunks_[at.chunk + 1].greatest : nullptr;
  }

 private:
  static constexpr std::size_t kChunkEntries = 64;
  static constexpr std::size_t kFirstEntries = 8;  // that there is room for at first

  struct Chunk {
    FreeEntry greatest;
    std::vector<FreeEntry> entries;  // descending, never empty
  };
  struct Position {
    std::size_t chunk;  // the last whose greatest is wanted, or the first of all
    std::size_t count;  // of its entries that are wanted
  };
  template <typename IsWanted>
  Position Count(IsWanted is_wanted) const {
    const auto after = std::partition_point(chunks_.begin(), chunks_.end(),
                                            [&](const Chunk& chunk) { return is_wanted(chunk.greatest); });
    if (after == chunks_.begin()) return {0, 0};
    const std::vector<FreeEntry>& entries = std::prev(after)->entries;
    // By halves without a branch: where it goes on cannot be predicted.
    const FreeEntry* begin = entries.data();
    for (std::size_t left = entries.size(); left > 0;) {
      const std::size_t half = (left + 1) / 2;
      const bool is_behind = is_wanted(begin[half - 1]);
      begin += is_behind ? half : 0;
      left -= half;
    }
    return {static_cast<std::size_t>(after - chunks_.begin()) - 1, static_cast<std::size_t>(begin - entries.data())};
  }
  void EraseAt(std::size_t chunk, std::size_t index);

  std::vector<Chunk> chunks_;
};

}  // namespace ashlar::policy

#endif  // ASHLAR_ALLOCATOR_POLICY_FREE_CHUNKS_H_
