// The free blocks of one lane in the order (size, rank, address), ascending: exact best fit.
//
// Log-linear bins (32 a doubling, in units of 512 bytes) with a two-level bitmap. A bin is two cache lines: the keys of
// its seven least blocks, in no order, and the blocks; what is greater lies in chunks behind them:
//
//   bitmap   ..1....1.......        size 5,632 -> bin 11 -> | #4 #9 #2  -  -  -  - | 3 |   greater: none
//                                                           | block block block    |
//
// As long as there are at most 32, and keys tell them apart, they are one sorted array and there are no bins: at most
// half a kilobyte, of which a search reads three cache lines. Most streams of a program that has many need no more.
//
// All seven keys are looked at each time, without a branch: how many there are cannot be predicted, and sorting them
// would cost more. A key is the size in its bin and the address, which is the order itself, or the size and the rank;
// of a rank that is the segment's, also the place in the segment. Where keys do not tell (equal ranks, sizes of no
// whole unit, sizes, addresses or places too large for a key) the blocks do. tests/allocator/policy compares every
// answer with std::set. Not thread-safe, searches included.
#ifndef ASHLAR_ALLOCATOR_POLICY_FREE_INDEX_H_
#define ASHLAR_ALLOCATOR_POLICY_FREE_INDEX_H_

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "allocator/base/check.h"
#include "allocator/policy/block.h"

namespace ashlar::policy {

// The entries of one bin of a FreeIndex that its line has no room for: a list of chunks, descending, so that the least
// is at the very back and leaves or comes without moving anything.
//
//   chunks_    | 90 81 77 | 64 60 |  ...  | 31 20 12 |      each knows its greatest entry without being read
//
// Not thread-safe.

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

class FreeIndex {
 public:
  // What ranks the blocks have: none, their segments', or any.
  enum class Ranks : std::uint8_t { kZero, kOfSegments, kAny };
  explicit FreeIndex(Ranks ranks = Ranks::kAny) : ranks_(ranks), may_tie_(ranks == Ranks::kAny) {}
  FreeIndex(const FreeIndex&) = delete;
  FreeIndex& operator=(const FreeIndex&) = delete;

  // The block must not be in the index; its size, rank and address must not change while it is.
  void Insert(Block* block) {
    if (bins_ == nullptr) {
      if (InsertAmongFew(block)) return;
      MakeBins();
    }
    InsertInBin(block);
  }

  void Erase(const Block* block) {
    if (bins_ == nullptr) return EraseAmongFew(*block);
    Bin* bin = last_found_.bin;
    std::size_t at = last_found_.at;
    if (bin->blocks[at] != block) {
      bin = &BinAt(BinOf(block->size_bytes >> kGranuleBits));
      const std::uint32_t mask = MaskOf(*bin, block);
      if (mask == 0) [[unlikely]]
        return EraseGreater(*bin, block);
      at = static_cast<std::size_t>(std::countr_zero(mask));
    }
    --size_;
    const std::uint32_t last = --bin->count;
    bin->keys[at] = bin->keys[last];
    bin->blocks[at] = bin->blocks[last];
    bin->keys[last] = kNoKey;
    bin->blocks[last] = nullptr;
    if (last == 0) Refill(*bin, BinOf(block->size_bytes >> kGranuleBits));
  }

  // The first block in order whose size is at least `size_bytes`; nullptr when there is none.
  Block* FirstAtLeast(std::uint64_t size_bytes) const {
    const std::uint64_t granules = (size_bytes + kGranuleBytes - 1) >> kGranuleBits;
    if (bins_ == nullptr) {
      ++probes_;
      return FewAt(FewBelow(std::min(granules, kMostFewGranules) << kLowBits));
    }
    if (may_tie_) [[unlikely]]
      return FirstAtLeastByBlocks(size_bytes);
    // All sizes are whole units.
    const std::size_t b = BinOf(granules);
    if (!IsEmptyBin(b)) {
      Bin& bin = BinAt(b);
      const std::uint64_t key = SizeKey(granules);
      const std::size_t at = LeastFrom(bin, key);
      if (bin.keys[at] >= key && bin.keys[at] != kNoKey) return Found(bin, at);
      if (bin.greater != nullptr) [[unlikely]] {
        ++probes_;
        const FreeEntry* entry = bin.greater->LeastOf([key](const FreeEntry& e) { return e.key >= key; });
        if (entry != nullptr) return entry->block;
      }
    }
    const std::size_t next = NextBin(b + 1);
    return next == kBinCount ? nullptr : Found(BinAt(next), LeastFrom(BinAt(next), 0));
  }
  // Neighbours in order of a block that is in the index; nullptr at the ends.
  Block* Next(const Block* block) const;
  Block* Previous(const Block* block) const;
  Block* First() const;
  Block* Last() const;

  bool Contains(const Block* block) const;
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  // Sorted arrays, lines and lists of chunks that searches looked at so far: what the index costs beyond its bitmap.
  std::uint64_t probes() const { return probes_; }

 private:
  static constexpr int kGranuleBits = 9;
  static constexpr std::uint64_t kGranuleBytes = std::uint64_t{1} << kGranuleBits;
  static constexpr std::size_t kBinsPerDoubling = 32;
  static constexpr std::size_t kBinCount = 64 * 28;  // sizes up to 2^63
  static constexpr std::size_t kWordCount = kBinCount / 64;
  static constexpr std::size_t kGroupBins = 8;  // bins that come together: one KiB, for the few sizes a stream has
  static constexpr std::size_t kGroupCount = kBinCount / kGroupBins;
  static constexpr std::uint32_t kLineEntries = 7;
  static constexpr std::uint64_t kNoKey = ~std::uint64_t{0};
  static constexpr std::uint64_t kLastKey = kNoKey - 1;  // of all that is too large for a key
  static constexpr int kLowBits = 44;                    // of a key: the address in granules, or the rank
  static constexpr int kPlaceBits = 24;                  // of those, for the place in a segment: 8 GiB
  static constexpr std::uint64_t kMostPlace = (std::uint64_t{1} << kPlaceBits) - 1;
  static constexpr std::uint64_t kMostLow = (std::uint64_t{1} << kLowBits) - 1;
  static constexpr std::size_t kFirstFew = 2;
  static constexpr std::size_t kMostFew = 32;
  static constexpr std::uint64_t kMostFewGranules = (std::uint64_t{1} << (64 - kLowBits)) - 1;
  static constexpr std::uint64_t kMostOffset = (std::uint64_t{1} << (64 - kLowBits)) - 2;

  struct alignas(128) Bin {
    constexpr Bin() { keys.fill(kNoKey); }

    std::array<std::uint64_t, kLineEntries> keys{};
    std::uint32_t count = 0;  // 0 only if the bin is empty
    std::array<Block*, kLineEntries> blocks{};
    std::unique_ptr<FreeChunks> greater;  // nullptr when there are none
  };
  static_assert(sizeof(Bin) == 128);
  using Group = std::array<Bin, kGroupBins>;
  // Where a block was seen last; nothing need be true of it any more.
  struct Seen {
    Bin* bin;
    std::size_t at;
  };

  // A group is made when one of its bins is first used.
  static_assert(kGroupCount <= 256);
  struct Bins {
    std::array<std::uint64_t, kWordCount> words{};
    std::uint32_t summary = 0;                       // bit w: words[w] is not 0
    std::array<std::uint8_t, kGroupCount> places{};  // in `groups`; 0: none
    std::vector<std::unique_ptr<Group>> groups = std::vector<std::unique_ptr<Group>>(1);
  };

  // --- while there are few: ascending by key, which is the size and the address or rank; no two are the same ---
  // kNoKey: it cannot be among the few.
  std::uint64_t FewKeyOf(const Block& block) const {
    const std::uint64_t low = LowOf(block);
    const std::uint64_t granules = block.size_bytes >> kGranuleBits;
    const bool is_whole = (block.size_bytes & (kGranuleBytes - 1)) == 0;
    return is_whole && IsOwnLow(low) && granules < kMostFewGranules ? granules << kLowBits | low : kNoKey;
  }
  // How many have a lesser key: by halves without a branch.
  std::size_t FewBelow(std::uint64_t key) const {
    const FreeEntry* begin = few_.get();
    for (std::size_t left = size_; left > 0;) {
      const std::size_t half = (left + 1) / 2;
      begin += begin[half - 1].key < key ? half : 0;
      left -= half;
    }
    return static_cast<std::size_t>(begin - few_.get());
  }
  Block* FewAt(std::size_t at) const { return at < size_ ? few_[at].block : nullptr; }
  bool InsertAmongFew(Block* block) {
    const std::uint64_t key = FewKeyOf(*block);
    if (key == kNoKey || size_ == kMostFew) return false;
    const std::size_t at = FewBelow(key);
    if (at < size_ && few_[at].key == key) return false;
    if (size_ == few_capacity_) [[unlikely]]
      GrowFew();
    std::copy_backward(few_.get() + at, few_.get() + size_, few_.get() + size_ + 1);
    few_[at] = {key, block};
    ++size_;
    return true;
  }
  void EraseAmongFew(const Block& block) {
    const std::size_t at = FewBelow(FewKeyOf(block));
    ASHLAR_CHECK(FewAt(at) == &block);
    std::copy(few_.get() + at + 1, few_.get() + size_, few_.get() + at);
    --size_;
  }
  void GrowFew();
  void MakeBins();

  void InsertInBin(Block* block) {
    const std::uint64_t granules = block->size_bytes >> kGranuleBits;
    const std::size_t b = BinOf(granules);
    const std::uint64_t key = KeyOf(*block, granules);
    may_tie_ |= !IsOwn(key);
    Bin& bin = MakeBin(b);
    ++size_;
    bins_->words[b / 64] |= std::uint64_t{1} << (b % 64);
    bins_->summary |= std::uint32_t{1} << (b / 64);
    if (bin.count == kLineEntries || bin.greater != nullptr) [[unlikely]]
      return InsertBeside(bin, {key, block});
    bin.keys[bin.count] = key;
    bin.blocks[bin.count] = block;
    ++bin.count;
  }

  static std::size_t BinOf(std::uint64_t granules) {
    const int shift = ShiftOf(granules);
    return kBinsPerDoubling * static_cast<std::size_t>(shift) + (granules >> shift);
  }
  // A bin holds 2 to this many sizes.
  static int ShiftOf(std::uint64_t granules) {
    return static_cast<int>(std::bit_width(granules | (kBinsPerDoubling - 1))) - 5 - (granules >= kBinsPerDoubling);
  }
  // The least key that a block of so many granules may have.
  static std::uint64_t SizeKey(std::uint64_t granules) {
    const std::uint64_t offset = granules & ((std::uint64_t{1} << ShiftOf(granules)) - 1);
    return offset > kMostOffset ? kLastKey : offset << kLowBits;
  }
  // What decides between equal sizes, if it is at most kMostLow: the address, the rank, or the segment's rank and the
  // place in it.
  std::uint64_t LowOf(const Block& block) const {
    if (ranks_ == Ranks::kZero) return block.address >> kGranuleBits;
    if (ranks_ == Ranks::kAny) return block.rank;
    const std::uint64_t place = (block.address - block.segment->address) >> kGranuleBits;
    return std::min(block.rank, kNoKey >> kPlaceBits) << kPlaceBits | std::min(place, kMostPlace);
  }
  // Whether no other block of the size has the same.
  bool IsOwnLow(std::uint64_t low) const {
    return low < kMostLow && (ranks_ != Ranks::kOfSegments || (low & kMostPlace) != kMostPlace);
  }
  // Blocks of different keys are in the order of their keys.
  std::uint64_t KeyOf(const Block& block, std::uint64_t granules) const {
    std::uint64_t low = LowOf(block);
    const bool is_whole = (block.size_bytes & (kGranuleBytes - 1)) == 0;
    if (!is_whole || low > kMostLow) [[unlikely]]
      low = kMostLow;
    const std::uint64_t base = SizeKey(granules);
    return base == kLastKey ? base : base | low;
  }
  // Whether no other block has this key.
  bool IsOwn(std::uint64_t key) const { return key != kLastKey && IsOwnLow(key & kMostLow); }

  // The place of the least key that is at least `from`, if there is one; else any place.
  std::size_t LeastFrom(const Bin& bin, std::uint64_t from) const {
    ++probes_;
    // Lesser keys wrap around to the far end.
    std::uint64_t least = bin.keys[0] - from;
    std::size_t at = 0;
    for (std::size_t i = 1; i < kLineEntries; ++i) {
      const std::uint64_t distance = bin.keys[i] - from;
      at = distance < least ? i : at;
      least = distance < least ? distance : least;
    }
    return at;
  }
  static std::uint32_t MaskOf(const Bin& bin, const Block* block) {
    std::uint32_t mask = 0;
    for (std::uint32_t i = 0; i < kLineEntries; ++i) mask |= std::uint32_t{bin.blocks[i] == block} << i;
    return mask;
  }
  Block* Found(Bin& bin, std::size_t at) const {
    last_found_ = {&bin, at};
    return bin.blocks[at];
  }

  Bin& BinAt(std::size_t b) const { return (*bins_->groups[bins_->places[b / kGroupBins]])[b % kGroupBins]; }
  Bin& MakeBin(std::size_t b) {
    if (bins_->places[b / kGroupBins] == 0) [[unlikely]]
      MakeGroup(b / kGroupBins);
    return BinAt(b);
  }
  void MakeGroup(std::size_t group);
  // The line is full, or there are greater blocks.
  void InsertBeside(Bin& bin, const FreeEntry& entry);
  void EraseGreater(Bin& bin, const Block* block);
  // The line of the bin has become empty.
  void Refill(Bin& bin, std::size_t b) {
    if (bin.greater != nullptr) [[unlikely]]
      return RefillFromGreater(bin);
    bins_->words[b / 64] &= ~(std::uint64_t{1} << (b % 64));
    if (bins_->words[b / 64] == 0) bins_->summary &= ~(std::uint32_t{1} << (b / 64));
  }
  static void RefillFromGreater(Bin& bin);
  // As FirstAtLeast, whatever the sizes and keys are.
  Block* FirstAtLeastByBlocks(std::uint64_t size_bytes) const;
  // The first and last block in order of a bin that is not empty.
  Block* FirstOf(const Bin& bin) const;
  static Block* LastOf(const Bin& bin);
  FreeEntry EntryOf(const Block* block) const {
    return {KeyOf(*block, block->size_bytes >> kGranuleBits), const_cast<Block*>(block)};
  }

  // The nearest bin with a block at or after `bin` (before or at, for Previous); kBinCount when there is none.
  std::size_t NextBin(std::size_t bin) const {
    if (bin >= kBinCount) return kBinCount;
    const std::size_t word = bin / 64;
    const std::uint64_t here = bins_->words[word] & (~std::uint64_t{0} << (bin % 64));
    if (here != 0) return word * 64 + static_cast<std::size_t>(std::countr_zero(here));
    const std::uint64_t later = std::uint64_t{bins_->summary} & (~std::uint64_t{1} << word);
    if (later == 0) return kBinCount;
    const auto next = static_cast<std::size_t>(std::countr_zero(later));
    return next * 64 + static_cast<std::size_t>(std::countr_zero(bins_->words[next]));
  }
  std::size_t PreviousBin(std::size_t bin) const;
  bool IsEmptyBin(std::size_t bin) const { return (bins_->words[bin / 64] >> (bin % 64) & 1) == 0; }

  std::unique_ptr<Bins> bins_;  // nullptr while there are few
  std::size_t size_ = 0;
  mutable std::uint64_t probes_ = 0;
  Ranks ranks_;
  bool may_tie_;  // two keys may be equal, or hide a size of no whole unit
  std::uint32_t few_capacity_ = 0;
  std::unique_ptr<FreeEntry[]> few_;
  static Bin nothing_;  // stays empty
  mutable Seen last_found_{&nothing_, 0};
};

}  // namespace ashlar::policy

#endif  // ASHLAR_ALLOCATOR_POLICY_FREE_INDEX_H_
