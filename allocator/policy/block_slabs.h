// Memory for a lane's block records: slabs that double up to 2 MiB, a huge page, and never shrink; deleted records are
// reused, the youngest first. A record that is deleted is not live. Not thread-safe.
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
    if (unused_.empty()) return NewInSlab();
    Block* block = unused_.back();
    unused_.pop_back();
    *block = Block{};
    return block;
  }
  void Delete(Block* block) { unused_.push_back(block); }

 private:
  static constexpr std::size_t kFirstSlabBlocks = 4;
  static constexpr std::size_t kMostSlabBlocks = (std::size_t{1} << 21) / sizeof(Block);

  Block* NewInSlab() {
    if (used_ == slab_blocks_) {
      slab_blocks_ = slabs_.empty() ? kFirstSlabBlocks : std::min(2 * slab_blocks_, kMostSlabBlocks);
      slabs_.emplace_back(slab_blocks_);
      used_ = 0;
    }
    return new (&slabs_.back()[used_++]) Block{};
  }

  std::vector<Block*> unused_;
  std::vector<HugeArray<Block>> slabs_;
  std::size_t slab_blocks_ = 0;  // of the last slab
  std::size_t used_ = 0;         // blocks of the last slab that were ever handed out
};

}  // namespace ashlar::policy

#endif  // ASHLAR_ALLOCATOR_POLICY_BLOCK_SLABS_H_
