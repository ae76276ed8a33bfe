#include "allocator/policy/free_index.h"

#include <iterator>
#include <utility>

namespace ashlar::policy {

void FreeChunks::Insert(const FreeEntry& entry) {
  if (chunks_.empty()) {
    chunks_.push_back({entry, {}});
    chunks_.back().entries.reserve(kFirstEntries);
    chunks_.back().entries.push_back(entry);
    return;
  }
  const Position at = Count([&entry](const FreeEntry& e) { return IsBefore(entry, e); });
  Chunk& chunk = chunks_[at.chunk];
  chunk.entries.insert(chunk.entries.begin() + static_cast<std::ptrdiff_t>(at.count), entry);
  if (at.count == 0) chunk.greatest = entry;
  if (chunk.entries.size() < kChunkEntries) return;
  // The lesser half becomes a chunk of its own behind it.
  const auto middle = chunk.entries.begin() + kChunkEntries / 2;
  Chunk lesser{*middle, {}};
  lesser.entries.reserve(kChunkEntries);
  lesser.entries.assign(middle, chunk.entries.end());
  chunk.entries.erase(middle, chunk.entries.end());
  chunks_.insert(chunks_.begin() + static_cast<std::ptrdiff_t>(at.chunk) + 1, std::move(lesser));
}

bool FreeChunks::Erase(const FreeEntry& entry) {
  const Position at = Count([&entry](const FreeEntry& e) { return !IsBefore(e, entry); });
  if (at.count == 0 || chunks_[at.chunk].entries[at.count - 1].block != entry.block) return false;
  EraseAt(at.chunk, at.count - 1);
  return true;
}

FreeEntry FreeChunks::PopLeast() {
  const FreeEntry out = least();
  EraseAt(chunks_.size() - 1, chunks_.back().entries.size() - 1);
  return out;
}

void FreeChunks::EraseAt(std::size_t c, std::size_t index) {
  Chunk& chunk = chunks_[c];
  chunk.entries.erase(chunk.entries.begin() + static_cast<std::ptrdiff_t>(index));
  if (chunk.entries.empty()) {
    chunks_.erase(chunks_.begin() + static_cast<std::ptrdiff_t>(c));
  } else if (index == 0) {
    chunk.greatest = chunk.entries.front();
  }
}

namespace {

// The first in order of a line's entries that are wanted; without a block if none is.
template <typename Bin, typename IsWanted>
FreeEntry LeastWanted(const Bin& bin, IsWanted is_wanted) {
  FreeEntry best{0, nullptr};
  for (std::size_t i = 0; i < bin.count; ++i) {
    const FreeEntry entry{bin.keys[i], bin.blocks[i]};
    if (is_wanted(entry) && (best.block == nullptr || IsBefore(entry, best))) best = entry;
  }
  return best;
}

}  // namespace

constinit FreeIndex::Bin FreeIndex::nothing_;

void FreeIndex::GrowFew() {
  few_capacity_ = std::max<std::uint32_t>(2 * few_capacity_, kFirstFew);
  auto more = std::unique_ptr<FreeEntry[]>(new FreeEntry[few_capacity_]);
  std::copy_n(few_.get(), size_, more.get());
  few_ = std::move(more);
}

void FreeIndex::MakeBins() {
  bins_ = std::make_unique<Bins>();
  const std::size_t count = std::exchange(size_, 0);
  for (std::size_t i = 0; i < count; ++i) InsertInBin(few_[i].block);
  few_ = nullptr;
}

void FreeIndex::MakeGroup(std::size_t group) {
  bins_->places[group] = static_cast<std::uint8_t>(bins_->groups.size());
  bins_->groups.push_back(std::make_unique<Group>());
}

void FreeIndex::InsertBeside(Bin& bin, const FreeEntry& entry) {
  if (bin.greater == nullptr || IsBefore(entry, bin.greater->least())) {
    std::size_t at = bin.count;
    if (at < kLineEntries) {
      bin.keys[at] = entry.key;
      bin.blocks[at] = entry.block;
      ++bin.count;
      return;
    }
    FreeEntry greatest = entry;
    for (std::size_t i = 0; i < kLineEntries; ++i) {
      if (IsBefore(greatest, {bin.keys[i], bin.blocks[i]})) {
        greatest = {bin.keys[i], bin.blocks[i]};
        at = i;
      }
    }
    if (at < kLineEntries) {
      bin.keys[at] = entry.key;
      bin.blocks[at] = entry.block;
    }
    if (bin.greater == nullptr) bin.greater = std::make_unique<FreeChunks>();
    bin.greater->Insert(greatest);
    return;
  }
  ++probes_;
  bin.greater->Insert(entry);
}

void FreeIndex::EraseGreater(Bin& bin, const Block* block) {
  ++probes_;
  ASHLAR_CHECK(bin.greater != nullptr && bin.greater->Erase(EntryOf(block)));
  if (bin.greater->empty()) bin.greater = nullptr;
  --size_;
}

// Half of what the line has room for: the next insert shall find room, and the next erase a block.
void FreeIndex::RefillFromGreater(Bin& bin) {
  while (bin.count <= kLineEntries / 2 && !bin.greater->empty()) {
    const FreeEntry entry = bin.greater->PopLeast();
    bin.keys[bin.count] = entry.key;
    bin.blocks[bin.count] = entry.block;
    ++bin.count;
  }
  if (bin.greater->empty()) bin.greater = nullptr;
}

Block* FreeIndex::FirstOf(const Bin& bin) const {
  return LeastWanted(bin, [](const FreeEntry&) { return true; }).block;
}

Block* FreeIndex::LastOf(const Bin& bin) {
  if (bin.greater != nullptr) return bin.greater->greatest().block;
  FreeEntry last{bin.keys[0], bin.blocks[0]};
  for (std::size_t i = 1; i < bin.count; ++i) {
    if (IsBefore(last, {bin.keys[i], bin.blocks[i]})) last = {bin.keys[i], bin.blocks[i]};
  }
  return last.block;
}

Block* FreeIndex::FirstAtLeastByBlocks(std::uint64_t size_bytes) const {
  // The first in order of those in the line with at least this key; nullptr if there is none.
  const auto first_from = [this](Bin& bin, std::uint64_t key) -> Block* {
    std::size_t at = LeastFrom(bin, key);
    const std::uint64_t least = bin.keys[at];
    if (least < key || least == kNoKey) return nullptr;
    std::uint32_t same = 0;
    for (std::uint32_t i = 0; i < kLineEntries; ++i) same |= std::uint32_t{bin.keys[i] == least} << i;
    for (same &= same - 1; same != 0; same &= same - 1) {
      const auto other = static_cast<std::size_t>(std::countr_zero(same));
      if (other != at && IsBefore(*bin.blocks[other], *bin.blocks[at])) at = other;
    }
    return Found(bin, at);
  };
  const std::uint64_t granules = size_bytes >> kGranuleBits;
  const std::size_t b = BinOf(granules);
  if (!IsEmptyBin(b)) {
    Bin& bin = BinAt(b);
    const std::uint64_t least_key = SizeKey(granules);
    const bool asks_blocks = (size_bytes & (kGranuleBytes - 1)) != 0 || least_key == kLastKey;
    const auto is_wanted = [&](const FreeEntry& entry) {
      return entry.key >= least_key && (!asks_blocks || entry.block->size_bytes >= size_bytes);
    };
    if (!asks_blocks) {
      if (Block* block = first_from(bin, least_key); block != nullptr) return block;
    } else if (const FreeEntry best = LeastWanted(bin, is_wanted); best.block != nullptr) {
      return best.block;
    }
    if (bin.greater != nullptr) {
      ++probes_;
      if (const FreeEntry* entry = bin.greater->LeastOf(is_wanted); entry != nullptr) return entry->block;
    }
  }
  const std::size_t next = NextBin(b + 1);
  return next == kBinCount ? nullptr : first_from(BinAt(next), 0);
}

std::size_t FreeIndex::PreviousBin(std::size_t bin) const {
  const std::size_t word = bin / 64;
  const std::uint64_t here = bins_->words[word] & (~std::uint64_t{0} >> (63 - bin % 64));
  if (here != 0) return word * 64 + 63 - static_cast<std::size_t>(std::countl_zero(here));
  const std::uint64_t earlier = std::uint64_t{bins_->summary} & ((std::uint64_t{1} << word) - 1);
  if (earlier == 0) return kBinCount;
  const std::size_t last = 63 - static_cast<std::size_t>(std::countl_zero(earlier));
  return last * 64 + 63 - static_cast<std::size_t>(std::countl_zero(bins_->words[last]));
}

Block* FreeIndex::Next(const Block* block) const {
  if (bins_ == nullptr) return FewAt(FewBelow(FewKeyOf(*block)) + 1);
  const std::size_t b = BinOf(block->size_bytes >> kGranuleBits);
  const Bin& bin = BinAt(b);
  const FreeEntry of = EntryOf(block);
  const auto is_after = [&of](const FreeEntry& entry) { return IsBefore(of, entry); };
  const FreeEntry best = LeastWanted(bin, is_after);
  if (best.block != nullptr) return best.block;
  if (bin.greater != nullptr) {
    const FreeEntry* entry = bin.greater->LeastOf(is_after);
    if (entry != nullptr) return entry->block;
  }
  const std::size_t next = NextBin(b + 1);
  return next == kBinCount ? nullptr : FirstOf(BinAt(next));
}

Block* FreeIndex::Previous(const Block* block) const {
  if (bins_ == nullptr) return FewAt(FewBelow(FewKeyOf(*block)) - 1);
  const std::size_t b = BinOf(block->size_bytes >> kGranuleBits);
  const Bin& bin = BinAt(b);
  const FreeEntry of = EntryOf(block);
  if (bin.greater != nullptr) {
    const FreeEntry* entry = bin.greater->GreatestBut([&of](const FreeEntry& e) { return !IsBefore(e, of); });
    if (entry != nullptr) return entry->block;
  }
  FreeEntry best{0, nullptr};
  for (std::size_t i = 0; i < bin.count; ++i) {
    const FreeEntry entry{bin.keys[i], bin.blocks[i]};
    if (IsBefore(entry, of) && (best.block == nullptr || IsBefore(best, entry))) best = entry;
  }
  if (best.block != nullptr) return best.block;
  if (b == 0) return nullptr;
  const std::size_t previous = PreviousBin(b - 1);
  return previous == kBinCount ? nullptr : LastOf(BinAt(previous));
}

Block* FreeIndex::First() const {
  if (bins_ == nullptr) return FewAt(0);
  const std::size_t bin = NextBin(0);
  return bin == kBinCount ? nullptr : FirstOf(BinAt(bin));
}

Block* FreeIndex::Last() const {
  if (bins_ == nullptr) return FewAt(size_ - 1);
  const std::size_t bin = PreviousBin(kBinCount - 1);
  return bin == kBinCount ? nullptr : LastOf(BinAt(bin));
}

bool FreeIndex::Contains(const Block* block) const {
  if (bins_ == nullptr) return FewAt(FewBelow(FewKeyOf(*block))) == block;
  const std::size_t b = BinOf(block->size_bytes >> kGranuleBits);
  if (IsEmptyBin(b)) return false;
  const Bin& bin = BinAt(b);
  if (MaskOf(bin, block) != 0) return true;
  const FreeEntry of = EntryOf(block);
  if (bin.greater == nullptr) return false;
  const FreeEntry* entry = bin.greater->LeastOf([&of](const FreeEntry& e) { return !IsBefore(e, of); });
  return entry != nullptr && entry->block == block;
}

}  // namespace ashlar::policy
