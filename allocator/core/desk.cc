#include "allocator/core/desk.h"

#include <cstdlib>

#include "allocator/policy/heap_steps.h"

namespace ashlar::core {

// A free of the newest block leads back to sums that were there before, and to a map that nothing has touched since.
void Desk::SettleNewest() {
  policy::Block* block = newest.block();
  const policy::Heap::ReleaseEffect effect = policy::Heap::EffectOfRelease(*block);
  CountRepeats(*block, effect.splits);
  if (newest.is_put_off()) {
    CountFreeUnchecked(block->is_small, Signed(block->size_bytes), Signed(block->requested_bytes), effect.splits);
    if (newest.is_named()) pointers.Erase({block, newest.slot()});
    policy::Heap::ReleaseAs(*block->segment->lane, block, effect);
  }
  newest.Settled();
}

// Each repeat was an allocation, and raised the split blocks on the way there or back.
void Desk::CountRepeats(const policy::Block& block, const policy::SplitCounts& splits) {
  SizeClass& sums = SizeClassOf(block.is_small);
  sums.increases[kBlocks] += newest.repeats();
  sums.increases[kBlockBytes] += newest.repeats() * Signed(block.size_bytes);
  sums.increases[kSplitBlocks] += newest.repeats() * std::abs(splits.blocks);
  sums.increases[kSplitBytes] += newest.repeats() * std::abs(splits.bytes);
}

}  // namespace ashlar::core
