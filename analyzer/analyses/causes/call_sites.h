// Where a program calls its model: the frames outside of the outermost module. Two passes from one place are of one
// loop of the program, whatever the modules do in them.
//
//   const CallSites sites(timeline, stacks, frames, moment);
//   const CallSites::Site* site = sites.Of(block.stack);   // nullptr: no module was called
//   if (site != nullptr && site->is_trained) ...           // a backward pass let go what a pass from there had made
//
// Needs stacks of the window. Immutable; pure functions.
#ifndef ASHLAR_ANALYZER_ANALYSES_CAUSES_CALL_SITES_H_
#define ASHLAR_ANALYZER_ANALYSES_CAUSES_CALL_SITES_H_

#include <cstddef>
#include <map>
#include <vector>

#include "allocator/trace/stack_table.h"
#include "analyzer/analyses/causes/torch_frames.h"
#include "analyzer/timeline/timeline.h"

namespace ashlar::analyses {

class CallSites {
 public:
  struct Site {
    bool is_trained = false;
    trace::StackId first = trace::kNoStack;  // of the first block of a pass, since the last backward pass
    std::size_t passes = 0;                  // since then: how often that line made a block
    trace::FrameId caller{};                 // the frame that called the module
  };

  CallSites(const timeline::Timeline& timeline, const trace::StackTable& stacks, const TorchStacks& frames,
            timeline::EventIndex moment);
  CallSites(const CallSites&) = delete;
  CallSites& operator=(const CallSites&) = delete;

  const Site* Of(trace::StackId stack) const;
  bool AreAnyTrained() const;
  // When a backward pass made a block last; kBeforeWindow: none did.
  timeline::EventIndex last_backward() const { return last_backward_; }

 private:
  timeline::EventIndex last_backward_ = timeline::kBeforeWindow;
  std::map<std::vector<trace::FrameId>, Site> sites_;
  std::map<trace::StackId, Site*> of_;  // stacks of forward passes
};

}  // namespace ashlar::analyses

#endif  // ASHLAR_ANALYZER_ANALYSES_CAUSES_CALL_SITES_H_
