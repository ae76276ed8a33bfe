#include "bench/rival_tlsf.h"

#include <algorithm>
#include <bit>
#include <mutex>

namespace ashlar::bench {
namespace {

constexpr std::uint64_t kGranule = 512;
constexpr std::uint64_t kRegionBytes = 256 * kMiB;

}  // namespace

// Linear up to 32 granules, then 32 classes a doubling.
std::size_t RivalTlsf::ClassOf(std::uint64_t size_bytes) {
  const std::uint64_t granules = size_bytes / kGranule;
  if (granules < 32) return granules;
  const int shift = static_cast<int>(std::bit_width(granules)) - 6;
  return 32 * static_cast<std::size_t>(shift) + (granules >> shift);
}

void RivalTlsf::Link(Block* block) {
  const std::size_t c = ClassOf(block->size_bytes);
  block->is_free = true;
  block->newer = nullptr;
  block->older = newest_[c];
  if (block->older != nullptr) block->older->newer = block;
  newest_[c] = block;
  words_[c / 64] |= std::uint64_t{1} << (c % 64);
  summary_ |= std::uint64_t{1} << (c / 64);
}

void RivalTlsf::Unlink(Block* block) {
  block->is_free = false;
  if (block->older != nullptr) block->older->newer = block->newer;
  if (block->newer != nullptr) {
    block->newer->older = block->older;
    return;
  }
  const std::size_t c = ClassOf(block->size_bytes);
  newest_[c] = block->older;
  if (newest_[c] != nullptr) return;
  words_[c / 64] &= ~(std::uint64_t{1} << (c % 64));
  if (words_[c / 64] == 0) summary_ &= ~(std::uint64_t{1} << (c / 64));
}

RivalTlsf::Block* RivalTlsf::TakeFirst(std::size_t from_class) {
  std::size_t word = from_class / 64;
  std::uint64_t bits = words_[word] & (~std::uint64_t{0} << (from_class % 64));
  if (bits == 0) {
    const std::uint64_t later = word == 63 ? 0 : summary_ & (~std::uint64_t{0} << (word + 1));
    if (later == 0) return nullptr;
    word = static_cast<std::size_t>(std::countr_zero(later));
    bits = words_[word];
  }
  Block* block = newest_[word * 64 + static_cast<std::size_t>(std::countr_zero(bits))];
  Unlink(block);
  return block;
}

RivalTlsf::Block* RivalTlsf::NewRecord() {
  if (unused_ == nullptr) return &records_.emplace_back();
  Block* block = unused_;
  unused_ = block->older;
  *block = Block{};
  return block;
}

RivalTlsf::Block* RivalTlsf::NewRegion(std::uint64_t size_bytes) {
  Block* block = NewRecord();
  block->address = next_region_;
  block->size_bytes = std::max(RoundUp(size_bytes, kRegionBytes), kRegionBytes);
  next_region_ += block->size_bytes + kRegionBytes;
  return block;
}

RivalTlsf::Block* RivalTlsf::Allocate(std::uint64_t bytes) {
  const std::uint64_t size_bytes = BlockBytes(bytes);
  const std::lock_guard<SpinLock> lock(lock_);
  // A class may hold smaller blocks than the request: search from the first that cannot.
  const std::uint64_t step = std::max<std::uint64_t>(std::bit_floor(size_bytes / kGranule) / 32, 1) * kGranule;
  Block* block = TakeFirst(ClassOf(size_bytes + step - kGranule));
  if (block == nullptr) block = NewRegion(size_bytes);
  if (block->size_bytes > size_bytes) {
    Block* rest = NewRecord();
    rest->address = block->address + size_bytes;
    rest->size_bytes = block->size_bytes - size_bytes;
    rest->below = block;
    rest->above = block->above;
    if (rest->above != nullptr) rest->above->below = rest;
    block->above = rest;
    block->size_bytes = size_bytes;
    Link(rest);
  }
  live_bytes_ += static_cast<std::int64_t>(size_bytes);
  return block;
}

// `high` becomes part of `low`.
void RivalTlsf::Absorb(Block* low, Block* high) {
  low->size_bytes += high->size_bytes;
  low->above = high->above;
  if (low->above != nullptr) low->above->below = low;
  high->older = unused_;
  unused_ = high;
}

void RivalTlsf::Free(Block* block) {
  const std::lock_guard<SpinLock> lock(lock_);
  live_bytes_ -= static_cast<std::int64_t>(block->size_bytes);
  if (block->below != nullptr && block->below->is_free) {
    Block* below = block->below;
    Unlink(below);
    Absorb(below, block);
    block = below;
  }
  if (block->above != nullptr && block->above->is_free) {
    Unlink(block->above);
    Absorb(block, block->above);
  }
  Link(block);
}

}  // namespace ashlar::bench
