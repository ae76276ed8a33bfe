#include "allocator/policy/free_index.h"

#include <algorithm>
#include <bit>

#include "allocator/base/check.h"
#include "allocator/policy/options.h"

namespace ashlar::policy {

std::size_t FreeIndex::BinOf(std::uint64_t size_bytes) {
  const std::uint64_t granules = size_bytes / kMinBlockBytes;
  if (granules < kBinsPerDoubling) return granules;
  const int shift = static_cast<int>(std::bit_width(granules)) - 6;  // leaves 6 bits: 32 bins a doubling
  return kBinsPerDoubling * static_cast<std::size_t>(shift) + (granules >> shift);
}

bool FreeIndex::Before(const Entry& a, const Entry& b) {
  if (a.size_bytes != b.size_bytes) return a.size_bytes < b.size_bytes;
  if (a.rank != b.rank) return a.rank < b.rank;
  return a.address < b.address;
}

FreeIndex::Entry FreeIndex::KeyOf(const Block* block) {
  return {block->size_bytes, block->rank, block->address, const_cast<Block*>(block)};
}

// Chunks and entries are descending: the answer is the last entry that is not before `key`.
FreeIndex::Position FreeIndex::LowerBound(const Bin& bin, const Entry& key) {
  const auto not_before = [&key](const Entry& entry) { return !Before(entry, key); };
  std::size_t chunk = 0;
  if (bin.size() > 1) {
    const auto it = std::partition_point(bin.begin(), bin.end(), [&](const Chunk& c) { return not_before(c.front()); });
    chunk = static_cast<std::size_t>(it - bin.begin());
  } else if (!bin.empty() && !bin[0].empty() && not_before(bin[0].front())) {
    chunk = 1;
  }
  if (chunk == 0) return {bin.size(), 0};
  const Chunk& entries = bin[chunk - 1];
  std::size_t low = 1;
  if (entries.size() <= 8) {
    while (low < entries.size() && not_before(entries[low])) ++low;
  } else {
    low = static_cast<std::size_t>(std::partition_point(entries.begin() + 1, entries.end(), not_before) -
                                   entries.begin());
  }
  return {chunk - 1, low - 1};
}

void FreeIndex::Insert(Block* block) {
  const std::size_t b = BinOf(block->size_bytes);
  Bin& bin = bins_[b];
  if (bin.empty()) bin.emplace_back().reserve(4);
  const Entry key = KeyOf(block);
  const Position at = LowerBound(bin, key);
  // New entries go right behind (in memory) the first entry that is greater.
  const std::size_t c = at.chunk < bin.size() ? at.chunk : 0;
  const std::size_t index = at.chunk < bin.size() ? at.index + 1 : 0;
  Chunk& chunk = bin[c];
  chunk.insert(chunk.begin() + static_cast<std::ptrdiff_t>(index), key);
  if (chunk.size() > kChunkEntries) {
    const auto middle = chunk.begin() + static_cast<std::ptrdiff_t>(chunk.size() / 2);
    Chunk tail(middle, chunk.end());
    chunk.erase(middle, chunk.end());
    bin.insert(bin.begin() + static_cast<std::ptrdiff_t>(c) + 1, std::move(tail));
  }
  words_[b / 64] |= std::uint64_t{1} << (b % 64);
  summary_ |= std::uint32_t{1} << (b / 64);
  ++size_;
}

void FreeIndex::Erase(const Block* block) {
  const std::size_t b = BinOf(block->size_bytes);
  Bin& bin = bins_[b];
  const Position at = LowerBound(bin, KeyOf(block));
  ASHLAR_CHECK(at.chunk < bin.size() && bin[at.chunk][at.index].block == block);
  Chunk& chunk = bin[at.chunk];
  chunk.erase(chunk.begin() + static_cast<std::ptrdiff_t>(at.index));
  --size_;
  if (!chunk.empty()) return;
  if (bin.size() > 1) {
    bin.erase(bin.begin() + static_cast<std::ptrdiff_t>(at.chunk));
    return;
  }
  words_[b / 64] &= ~(std::uint64_t{1} << (b % 64));
  if (words_[b / 64] == 0) summary_ &= ~(std::uint32_t{1} << (b / 64));
}

std::size_t FreeIndex::NextBin(std::size_t bin) const {
  if (bin >= kBinCount) return kBinCount;
  const std::size_t word = bin / 64;
  const std::uint64_t here = words_[word] & (~std::uint64_t{0} << (bin % 64));
  if (here != 0) return word * 64 + static_cast<std::size_t>(std::countr_zero(here));
  const std::uint64_t later = std::uint64_t{summary_} & (~std::uint64_t{1} << word);
  if (later == 0) return kBinCount;
  const auto next = static_cast<std::size_t>(std::countr_zero(later));
  return next * 64 + static_cast<std::size_t>(std::countr_zero(words_[next]));
}

std::size_t FreeIndex::PreviousBin(std::size_t bin) const {
  const std::size_t word = bin / 64;
  const std::uint64_t here = words_[word] & (~std::uint64_t{0} >> (63 - bin % 64));
  if (here != 0) return word * 64 + 63 - static_cast<std::size_t>(std::countl_zero(here));
  const std::uint64_t earlier = std::uint64_t{summary_} & ((std::uint64_t{1} << word) - 1);
  if (earlier == 0) return kBinCount;
  const std::size_t last = 63 - static_cast<std::size_t>(std::countl_zero(earlier));
  return last * 64 + 63 - static_cast<std::size_t>(std::countl_zero(words_[last]));
}

Block* FreeIndex::FirstAtLeast(std::uint64_t size_bytes) const {
  const std::size_t b = BinOf(size_bytes);
  if (!IsEmptyBin(b)) {
    const Position at = LowerBound(bins_[b], Entry{size_bytes, 0, 0, nullptr});
    if (at.chunk < bins_[b].size()) return bins_[b][at.chunk][at.index].block;
  }
  const std::size_t next = NextBin(b + 1);
  return next == kBinCount ? nullptr : FirstOf(bins_[next]);
}

Block* FreeIndex::Next(const Block* block) const {
  const std::size_t b = BinOf(block->size_bytes);
  const Bin& bin = bins_[b];
  const Position at = LowerBound(bin, KeyOf(block));
  if (at.index > 0) return bin[at.chunk][at.index - 1].block;
  if (at.chunk > 0) return bin[at.chunk - 1].back().block;
  const std::size_t next = NextBin(b + 1);
  return next == kBinCount ? nullptr : FirstOf(bins_[next]);
}

Block* FreeIndex::Previous(const Block* block) const {
  const std::size_t b = BinOf(block->size_bytes);
  const Bin& bin = bins_[b];
  const Position at = LowerBound(bin, KeyOf(block));
  if (at.index + 1 < bin[at.chunk].size()) return bin[at.chunk][at.index + 1].block;
  if (at.chunk + 1 < bin.size()) return bin[at.chunk + 1].front().block;
  if (b == 0) return nullptr;
  const std::size_t previous = PreviousBin(b - 1);
  return previous == kBinCount ? nullptr : LastOf(bins_[previous]);
}

Block* FreeIndex::First() const {
  const std::size_t bin = NextBin(0);
  return bin == kBinCount ? nullptr : FirstOf(bins_[bin]);
}

Block* FreeIndex::Last() const {
  const std::size_t bin = PreviousBin(kBinCount - 1);
  return bin == kBinCount ? nullptr : LastOf(bins_[bin]);
}

bool FreeIndex::Contains(const Block* block) const {
  const Bin& bin = bins_[BinOf(block->size_bytes)];
  const Position at = LowerBound(bin, KeyOf(block));
  return at.chunk < bin.size() && bin[at.chunk][at.index].block == block;
}

}  // namespace ashlar::policy
