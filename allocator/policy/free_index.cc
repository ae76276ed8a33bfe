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

// Without branches: which of two random blocks is larger cannot be predicted.
bool FreeIndex::Before(const Entry& a, const Entry& b) {
  const bool same_rank_before = (a.rank == b.rank) & (a.address < b.address);
  const bool same_size_before = (a.size_bytes == b.size_bytes) & ((a.rank < b.rank) | same_rank_before);
  return (a.size_bytes < b.size_bytes) | same_size_before;
}

// How many entries, from the front, are not before `key`.
std::size_t FreeIndex::CountNotBefore(const Chunk& entries, const Entry& key) const {
  const Entry* base = entries.data();
  std::size_t left = entries.size();
  while (left > 1) {
    ++probes_;
    const std::size_t half = left / 2;
    base += Before(base[half - 1], key) ? 0 : half;
    left -= half;
  }
  ++probes_;
  const bool counts_last = left == 1 && !Before(*base, key);
  return static_cast<std::size_t>(base - entries.data()) + counts_last;
}

// Chunks and entries are descending: the answer is the last entry that is not before `key`.
FreeIndex::Position FreeIndex::LowerBound(const Bin& bin, const Entry& key) const {
  std::size_t chunk = bin.greater.size();
  std::size_t count = CountNotBefore(bin.least, key);
  if (count == 0 && chunk > 0) {
    const auto it = std::partition_point(bin.greater.begin(), bin.greater.end(),
                                         [&key](const Chunk& c) { return !Before(c.front(), key); });
    if (it == bin.greater.begin()) return {bin.size(), 0};
    chunk = static_cast<std::size_t>(it - bin.greater.begin()) - 1;
    count = CountNotBefore(bin.greater[chunk], key);
  }
  return count == 0 ? Position{bin.size(), 0} : Position{chunk, count - 1};
}

void FreeIndex::Insert(Block* block) {
  const std::size_t b = BinOf(block->size_bytes);
  Bin& bin = bins_[b];
  ++size_;
  if (bin.least.empty()) {
    bin.least.emplace_back(block);
    words_[b / 64] |= std::uint64_t{1} << (b % 64);
    summary_ |= std::uint32_t{1} << (b / 64);
    return;
  }
  const Entry key(block);
  if (Before(key, bin.least.back()) && bin.least.size() < kChunkEntries) {
    bin.least.push_back(key);
    return;
  }
  const Position at = LowerBound(bin, key);
  // New entries go right behind (in memory) the first entry that is greater.
  const std::size_t c = at.chunk < bin.size() ? at.chunk : 0;
  const std::size_t index = at.chunk < bin.size() ? at.index + 1 : 0;
  Chunk& chunk = bin[c];
  chunk.insert(chunk.begin() + static_cast<std::ptrdiff_t>(index), key);
  if (chunk.size() > kChunkEntries) Halve(bin, c);
}

// The chunk's front half becomes a chunk of its own before it.
void FreeIndex::Halve(Bin& bin, std::size_t c) {
  Chunk& chunk = bin[c];
  const auto middle = chunk.begin() + static_cast<std::ptrdiff_t>(chunk.size() / 2);
  Chunk front(chunk.begin(), middle);
  chunk.erase(chunk.begin(), middle);
  bin.greater.insert(bin.greater.begin() + static_cast<std::ptrdiff_t>(c), std::move(front));
}

void FreeIndex::Erase(const Block* block) {
  const std::size_t b = BinOf(block->size_bytes);
  Bin& bin = bins_[b];
  --size_;
  ASHLAR_CHECK(!bin.least.empty());
  if (bin.least.back().block == block) {
    bin.least.pop_back();
    if (bin.least.empty()) DropEmpty(b, bin.greater.size());
    return;
  }
  const Position at = LowerBound(bin, Entry(block));
  ASHLAR_CHECK(at.chunk < bin.size() && bin[at.chunk][at.index].block == block);
  Chunk& chunk = bin[at.chunk];
  chunk.erase(chunk.begin() + static_cast<std::ptrdiff_t>(at.index));
  if (chunk.empty()) DropEmpty(b, at.chunk);
}

void FreeIndex::DropEmpty(std::size_t b, std::size_t c) {
  Bin& bin = bins_[b];
  if (c < bin.greater.size()) {
    bin.greater.erase(bin.greater.begin() + static_cast<std::ptrdiff_t>(c));
  } else if (!bin.greater.empty()) {
    bin.least = std::move(bin.greater.back());
    bin.greater.pop_back();
  } else {
    words_[b / 64] &= ~(std::uint64_t{1} << (b % 64));
    if (words_[b / 64] == 0) summary_ &= ~(std::uint32_t{1} << (b / 64));
  }
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
    if (bins_[b].least.back().size_bytes >= size_bytes) return FirstOf(bins_[b]);
    const Position at = LowerBound(bins_[b], Entry{size_bytes, 0, 0, nullptr});
    if (at.chunk < bins_[b].size()) return bins_[b][at.chunk][at.index].block;
  }
  const std::size_t next = NextBin(b + 1);
  return next == kBinCount ? nullptr : FirstOf(bins_[next]);
}

Block* FreeIndex::Next(const Block* block) const {
  const std::size_t b = BinOf(block->size_bytes);
  const Bin& bin = bins_[b];
  const Position at = LowerBound(bin, Entry(block));
  if (at.index > 0) return bin[at.chunk][at.index - 1].block;
  if (at.chunk > 0) return bin[at.chunk - 1].back().block;
  const std::size_t next = NextBin(b + 1);
  return next == kBinCount ? nullptr : FirstOf(bins_[next]);
}

Block* FreeIndex::Previous(const Block* block) const {
  const std::size_t b = BinOf(block->size_bytes);
  const Bin& bin = bins_[b];
  const Position at = LowerBound(bin, Entry(block));
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
  const Position at = LowerBound(bin, Entry(block));
  return at.chunk < bin.size() && bin[at.chunk][at.index].block == block;
}

}  // namespace ashlar::policy
