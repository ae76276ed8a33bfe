// Blocks and segments: the bookkeeping records of the heap. Addresses are plain numbers here; nothing is dereferenced.
//
//   segment   |<-- block -->|<------ block ------>|<- block ->|     blocks tile the segment; prev/next are neighbours
//               live 5 MiB          free 9 MiB        live ...
//
// A block belongs for life to the lane (pool and stream) and the segment it was made in.
#ifndef ASHLAR_ALLOCATOR_POLICY_BLOCK_H_
#define ASHLAR_ALLOCATOR_POLICY_BLOCK_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <new>
#include <vector>

#include "allocator/base/huge_array.h"
#include "allocator/base/units.h"

namespace ashlar::policy {

struct Lane;

enum class BlockUse : std::uint8_t {
  kFree = 0,
  kPending,      // freed by the caller, waits for events; cannot merge or be reused
  kUnmapped,     // address space of an expandable segment without memory behind it
  kLive = 0x5a,  // a number that memory which is no record seldom holds
};

struct Block;

struct Segment {
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;  // for expandable segments the whole reservation
  std::uint64_t page_bytes = 0;  // expandable segments only
  std::uint64_t rank = 0;        // order of creation
  Lane* lane = nullptr;
  Block* first = nullptr;
  // Pages larger than page_bytes: address -> size. Policy::kAshlar only.
  std::map<std::uint64_t, std::uint64_t> large_pages;
  bool is_expandable = false;
};

// One cache line: a free of a random block pays for one miss, not two.
struct alignas(64) Block {
  std::uint64_t address = 0;
  std::uint64_t size_bytes = 0;
  union {
    std::uint64_t requested_bytes = 0;  // of a live or pending block
    std::uint64_t freed_at;             // of a free block: the pool's clock when it joined the free set
  };
  Segment* segment = nullptr;
  Block* prev = nullptr;
  Block* next = nullptr;
  std::uint64_t rank = 0;  // decides between equal sizes before the address does
  std::uint32_t pending_events = 0;
  BlockUse state = BlockUse::kFree;
  bool has_recorded_streams : 1 = false;
  bool is_expandable : 1 = false;  // as its segment,
  bool is_small : 1 = false;       // as its pool: the hot path touches neither
  bool is_shared : 1 = false;      // a page of it was exported to another process since it came
  bool prev_is_free = false;       // whether the neighbours are in the free set:
  bool next_is_free = false;       // a free between live blocks need not read them

  // Whether a thread cache alone may free it.
  bool IsPlain() const { return !has_recorded_streams && !is_shared; }
  bool IsSplit() const { return prev != nullptr || next != nullptr; }
  std::uint64_t End() const { return address + size_bytes; }
};
static_assert(sizeof(Block) == 64);

// Memory for a lane's block records: small slabs, each a quarter of what is there, and from 1 MiB on slabs of 2 MiB, a
// huge page; they never shrink. Deleted records are reused, the youngest first: each knows the one before it. A record
// that is deleted is not live. Not thread-safe.
class BlockSlabs {
 public:
  // A record with every field at its default.
  Block* New() {
    if (unused_ == nullptr) return NewInSlab();
    Block* block = unused_;
    unused_ = block->next;
    *block = Block{};
    return block;
  }
  void Delete(Block* block) {
    block->next = unused_;
    unused_ = block;
  }

 private:
  static constexpr std::size_t kFirstSlabBlocks = 4;
  static constexpr std::size_t kMostSlabBlocks = (std::size_t{1} << 21) / sizeof(Block);

  Block* NewInSlab() {
    if (used_ == slab_blocks_) {
      slab_blocks_ = blocks_ < kMostSlabBlocks / 2 ? std::max(blocks_ / 4, kFirstSlabBlocks) : kMostSlabBlocks;
      slabs_.emplace_back(slab_blocks_);
      blocks_ += slab_blocks_;
      used_ = 0;
    }
    return new (&slabs_.back()[used_++]) Block{};
  }

  Block* unused_ = nullptr;  // the youngest
  std::vector<HugeArray<Block>> slabs_;
  std::size_t blocks_ = 0;       // of all slabs
  std::size_t slab_blocks_ = 0;  // of the last slab
  std::size_t used_ = 0;         // blocks of the last slab that were ever handed out
};

}  // namespace ashlar::policy

#endif  // ASHLAR_ALLOCATOR_POLICY_BLOCK_H_
