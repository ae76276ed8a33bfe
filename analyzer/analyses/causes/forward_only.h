// Finds whether a moment lies in a stretch of passes without a backward pass between them: an evaluation or a
// generation, also where no function is named so. Private to the detectors. Pure function.
#ifndef ASHLAR_ANALYZER_ANALYSES_CAUSES_FORWARD_ONLY_H_
#define ASHLAR_ANALYZER_ANALYSES_CAUSES_FORWARD_ONLY_H_

#include <cstddef>
#include <vector>

#include "analyzer/analyses/causes/cause.h"
#include "analyzer/analyses/causes/evidence.h"
#include "analyzer/analyses/causes/torch_frames.h"

namespace ashlar::analyses {

struct ForwardOnly {
  timeline::EventIndex last_backward =
      timeline::kBeforeWindow;                            // the last request of a backward pass before the moment
  timeline::EventIndex next_backward = timeline::kNever;  // the first after it
  std::size_t rounds = 0;                                 // of a loop between them; 0 for fewer than three
};

// The context has a history with stacks.
ForwardOnly ForwardOnlyAt(const CauseContext& context, const TorchStacks& frames);

// Blocks of forward passes of that stretch that are alive at the moment; empty where the stretch has no rounds, or
// where most of their bytes are there for the next backward pass.
std::vector<LiveBlock> SavedForNothing(const CauseContext& context, const TorchStacks& frames,
                                       const ForwardOnly& stretch);

}  // namespace ashlar::analyses

#endif  // ASHLAR_ANALYZER_ANALYSES_CAUSES_FORWARD_ONLY_H_
