#include "analyzer/answers/explanation.h"

namespace ashlar::answers {

void SetAccounting(const core::Accounting& state, Explanation& explanation) {
  OomAccounting& out = explanation.accounting;
  out.allocated_bytes = state.allocated_bytes;
  out.reserved_bytes = state.reserved_bytes;
  out.live_bytes = state.live_bytes;
  out.rounding_bytes = state.rounding_bytes;
  out.pending_bytes = state.pending_bytes;
  out.stranded_bytes = state.stranded_bytes;
  out.whole_free_bytes = state.whole_free_bytes;
  out.private_pool_bytes = state.private_pool_bytes;
  explanation.stranded_segments = state.stranded_segment_count;
  explanation.pinning_blocks = state.pinning_block_count;
}

}  // namespace ashlar::answers
