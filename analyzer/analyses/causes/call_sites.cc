#include "analyzer/analyses/causes/call_sites.h"

#include <algorithm>

#include "absl/strings/match.h"

namespace ashlar::analyses {
namespace {

using timeline::BlockSpan;
using timeline::EventIndex;

// Of forward passes, let go while a backward pass works: a result that nobody needs any more may go there by chance.
constexpr std::size_t kLeastLetGo = 4;

bool IsOfModule(const trace::Frame& frame) {
  return frame.function == "forward" || absl::EndsWith(frame.file, "torch/nn/modules/module.py");
}

// Frames are innermost first; empty where no module was called, or nothing called it.
std::vector<trace::FrameId> CallersOf(const trace::StackTable& stacks, trace::StackId stack) {
  const auto frames = stacks.stack(stack);
  for (std::size_t i = frames.size(); i > 0; --i) {
    if (IsOfModule(stacks.frame(frames[i - 1]))) return {frames.begin() + i, frames.end()};
  }
  return {};
}

}  // namespace

CallSites::CallSites(const timeline::Timeline& timeline, const trace::StackTable& stacks, const TorchStacks& frames,
                     EventIndex moment) {
  const auto blocks = timeline.blocks();
  std::vector<const BlockSpan*> made;  // in order
  for (const BlockSpan& block : blocks) {
    if (block.alloc_event < 0 || block.alloc_event > moment) continue;
    made.push_back(&block);
    if (frames.IsBackward(block)) last_backward_ = block.alloc_event;
    if (!frames.Of(block.stack).is_forward || of_.count(block.stack) > 0) continue;
    const std::vector<trace::FrameId> callers = CallersOf(stacks, block.stack);
    if (callers.empty()) continue;
    Site& site = sites_[callers];
    site.caller = callers.front();
    of_[block.stack] = &site;
  }
  const auto is_let_go_in_backward = [&](const BlockSpan& block) {
    if (block.free_requested_event > moment) return false;
    const auto after = std::upper_bound(made.begin(), made.end(), block.free_requested_event,
                                        [](EventIndex at, const BlockSpan* one) { return at < one->alloc_event; });
    return after != made.begin() && frames.IsBackward(**(after - 1));
  };
  std::map<const Site*, std::size_t> let_go;
  for (const BlockSpan* const block : made) {
    const auto found = of_.find(block->stack);
    if (found == of_.end()) continue;
    Site& site = *found->second;
    if (block->alloc_event > last_backward_) {
      if (site.first == trace::kNoStack) site.first = block->stack;
      site.passes += block->stack == site.first ? 1 : 0;
    }
    if (!site.is_trained && is_let_go_in_backward(*block)) site.is_trained = ++let_go[&site] >= kLeastLetGo;
  }
}

const CallSites::Site* CallSites::Of(trace::StackId stack) const {
  const auto found = of_.find(stack);
  return found == of_.end() ? nullptr : found->second;
}

bool CallSites::AreAnyTrained() const {
  return std::any_of(sites_.begin(), sites_.end(), [](const auto& site) { return site.second.is_trained; });
}

}  // namespace ashlar::analyses
