// Memory for a lane's block records: small slabs, each a quarter of what is there, and from 1 MiB on slabs of 2 MiB, a
// huge page; they never shrink. Deleted records are reused, the youngest first: each knows the one before it. A record
// that is deleted is not live. Not thread-safe.
#ifndef ASHLAR_ALLOCATOR_POLICY_BLOCK_SLABS_H_
#define ASHLAR_ALLOCATOR_POLICY_BLOCK_SLABS_H_

#include <algorithm>
#include <cstddef>
#include <new>
#include <vector>

#include "allocator/base/huge_array.h"
#include "allocator/policy/block.h"

namespace ashlar::policy {

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

#endif  // ASHLAR_ALLOCATOR_POLICY_BLOCK_SLABS_H_
