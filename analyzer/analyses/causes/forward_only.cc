#include "analyzer/analyses/causes/forward_only.h"

#include <algorithm>
#include <set>

#include "analyzer/analyses/steps/iterations.h"

namespace ashlar::analyses {
namespace {

constexpr std::size_t kLeastPasses = 3;

}  // namespace

ForwardOnly ForwardOnlyAt(const CauseContext& context, const TorchStacks& frames) {
  ForwardOnly out;
  for (const timeline::BlockSpan& block : context.history->timeline->blocks()) {
    if (!frames.IsBackward(block)) continue;
    if (block.alloc_event <= context.history->moment) {
      out.last_backward = std::max<timeline::EventIndex>(out.last_backward, block.alloc_event);
    } else {
      out.next_backward = std::min<timeline::EventIndex>(out.next_backward, block.alloc_event);
    }
  }
  const std::vector<timeline::EventIndex> begins =
      RoundsIn(*context.history->timeline, context.history->stacks, {out.last_backward + 1, out.next_backward});
  std::set<std::size_t> passes;  // rounds with a module's call
  for (const timeline::BlockSpan& block : context.history->timeline->blocks()) {
    if (begins.empty() || !frames.Of(block.stack).is_forward || block.alloc_event >= out.next_backward) continue;
    const auto after = std::upper_bound(begins.begin(), begins.end(), block.alloc_event);
    if (after != begins.begin()) passes.insert(static_cast<std::size_t>(after - begins.begin()));
  }
  out.rounds = passes.size() < kLeastPasses ? 0 : passes.size();
  return out;
}

std::vector<LiveBlock> SavedForNothing(const CauseContext& context, const TorchStacks& frames,
                                       const ForwardOnly& stretch) {
  std::vector<LiveBlock> out;
  if (stretch.rounds == 0) return out;
  std::uint64_t needed = 0;
  for (const LiveBlock& live : LiveBlocks(context)) {
    if (live.block->alloc_event <= stretch.last_backward || !frames.Of(live.block->stack).is_forward) continue;
    out.push_back(live);
    const bool is_used = stretch.next_backward != timeline::kNever && live.block->IsLiveAfter(stretch.next_backward);
    if (is_used) needed += live.block->size_bytes;
  }
  if (2 * needed > BytesOf(out)) out.clear();
  return out;
}

}  // namespace ashlar::analyses
