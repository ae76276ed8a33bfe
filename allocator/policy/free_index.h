// The free blocks of one lane in the order (size, rank, address), ascending: exact best fit.
//
// Log-linear bins (32 a doubling, in units of 512 bytes) with a two-level bitmap; a bin is a short list of sorted
// chunks, so that thousands of equal sizes stay cheap. Nearly all bins have one chunk only, which lies in the bin:
//
//   bitmap   ..1....1.......        size 5,632 -> bin 11 -> greater: | 5632 #9 |  least: | 5632 #4 |   descending: the
//                                                                                  first in order is at the very back
//
// Insert and Erase cost a few cache lines; FirstAtLeast is at most two bins. tests/policy compares every answer with
// std::set. Not thread-safe.
#ifndef ASHLAR_ALLOCATOR_POLICY_FREE_INDEX_H_
#define ASHLAR_ALLOCATOR_POLICY_FREE_INDEX_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "allocator/policy/block.h"

namespace ashlar::policy {

class FreeIndex {
 public:
  // The block must not be in the index; its size, rank and address must not change while it is.
  void Insert(Block* block);
  void Erase(const Block* block);

  // The first block in order whose size is at least `size_bytes`; nullptr when there is none.
  Block* FirstAtLeast(std::uint64_t size_bytes) const;
  // Neighbours in order of a block that is in the index; nullptr at the ends.
  Block* Next(const Block* block) const;
  Block* Previous(const Block* block) const;
  Block* First() const;
  Block* Last() const;

  bool Contains(const Block* block) const;
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  // Entries that searches looked at so far: what the index costs beyond its bitmap.
  std::uint64_t probes() const { return probes_; }

 private:
  struct Entry {
    // Constructors, so that an entry is made in its place: copying one that was just written stalls.
    Entry(std::uint64_t size, std::uint64_t its_rank, std::uint64_t at, Block* its_block)
        : size_bytes(size), rank(its_rank), address(at), block(its_block) {}
    explicit Entry(const Block* of) : Entry(of->size_bytes, of->rank, of->address, const_cast<Block*>(of)) {}

    std::uint64_t size_bytes;
    std::uint64_t rank;
    std::uint64_t address;
    Block* block;
  };
  using Chunk = std::vector<Entry>;
  struct Bin {
    Chunk least;                 // empty only if the bin is
    std::vector<Chunk> greater;  // none of them is empty

    std::size_t size() const { return greater.size() + 1; }
    Chunk& operator[](std::size_t i) { return i < greater.size() ? greater[i] : least; }
    const Chunk& operator[](std::size_t i) const { return i < greater.size() ? greater[i] : least; }
  };
  struct Position {
    std::size_t chunk;
    std::size_t index;
  };

  static constexpr std::size_t kBinsPerDoubling = 32;
  static constexpr std::size_t kChunkEntries = 64;
  static constexpr std::size_t kBinCount = 64 * 28;  // sizes up to 2^63
  static constexpr std::size_t kWordCount = kBinCount / 64;

  static std::size_t BinOf(std::uint64_t size_bytes);
  static bool Before(const Entry& a, const Entry& b);
  // The position of the first entry in order that is not before `key`, or the bin's end as {chunks, 0}.
  Position LowerBound(const Bin& bin, const Entry& key) const;
  // The first and last entry in order of a bin that is not empty.
  static Block* FirstOf(const Bin& bin) { return bin.least.back().block; }
  static Block* LastOf(const Bin& bin) { return bin[0].front().block; }
  std::size_t CountNotBefore(const Chunk& entries, const Entry& key) const;
  static void Halve(Bin& bin, std::size_t chunk);
  // A chunk has become empty.
  void DropEmpty(std::size_t bin, std::size_t chunk);

  // The nearest bin with a block at or after `bin` (before or at, for Previous); kBinCount when there is none.
  std::size_t NextBin(std::size_t bin) const;
  std::size_t PreviousBin(std::size_t bin) const;
  bool IsEmptyBin(std::size_t bin) const { return (words_[bin / 64] >> (bin % 64) & 1) == 0; }

  std::vector<Bin> bins_ = std::vector<Bin>(kBinCount);
  std::array<std::uint64_t, kWordCount> words_{};
  std::uint32_t summary_ = 0;  // bit w: words_[w] is not 0
  std::size_t size_ = 0;
  mutable std::uint64_t probes_ = 0;
};

}  // namespace ashlar::policy

#endif  // ASHLAR_ALLOCATOR_POLICY_FREE_INDEX_H_
