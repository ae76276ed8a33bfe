// What PyTorch's own frames in a stack say: whether a module was called, whether a hook made the block, whether the
// innermost module has hooks; and which blocks a backward pass made. Module.__call__ is `_call_impl` in
// torch/nn/modules/module.py; where the module has hooks, it calls them and `forward` from `inner` (PyTorch 2.5 on), so
// a frame right inside of these that is not `forward` is a hook, unless the same line calls `forward` elsewhere or a
// `forward` lies further inside: then it is a wrapper around it. Pure functions.
#ifndef ASHLAR_ANALYZER_ANALYSES_CAUSES_TORCH_FRAMES_H_
#define ASHLAR_ANALYZER_ANALYSES_CAUSES_TORCH_FRAMES_H_

#include <cstdint>
#include <set>
#include <vector>

#include "allocator/trace/stack_table.h"
#include "analyzer/analyses/steps/program_part.h"
#include "analyzer/timeline/timeline.h"

namespace ashlar::analyses {

// Of one stack.
struct TorchFrames {
  ProgramPart part{};
  bool has_frames = false;
  bool is_python = false;         // a frame of a .py file
  bool is_forward = false;        // in a `forward` or a module's call
  bool is_hook = false;           // a hook function allocated
  bool calls_hooks = false;       // a module that calls hooks
  bool is_hooked_inside = false;  // the innermost module has hooks, and another module called it
  bool is_copy = false;           // copy.deepcopy
  bool is_gradient_call = false;  // torch.autograd.grad
  bool is_training_mode = false;  // a dropout's mask: an evaluation makes none
  bool is_loss = false;           // a loss of torch.nn
  bool is_without_grad = false;   // in a function that torch.no_grad or torch.inference_mode decorates: no graph
  bool is_made_once = false;      // the model's constructor, .to(device), loading
  bool is_of_model = false;       // PyTorch's own frames say so: a parameter made, moved, initialized or loaded
};

class TorchStacks {
 public:
  // `stacks` may be nullptr.
  TorchStacks(const timeline::Timeline& timeline, const trace::StackTable* stacks);

  const TorchFrames& Of(trace::StackId stack) const { return stack < of_.size() ? of_[stack] : none_; }
  // Whether requests of the window have Python stacks, a fifth of them at least, so that one without is the autograd
  // engine's.
  // Of a backward pass, by its frames or by having none.
  bool IsBackward(const timeline::BlockSpan& block) const;
  // Whether torch.autograd.grad works inside of a pass, as the inner loop of a meta-learner does: what its calls make
  // is still there two calls later, for a backward pass to come. Such calls end no pass and no step.
  bool AreGradientsInner() const { return !inner_.empty(); }
  bool IsInnerGradient(const timeline::BlockSpan& block) const { return inner_.count(block.alloc_event) > 0; }
  bool AreHooksSeen() const { return are_hooks_seen_; }  // a hook function, or a module that calls hooks

 private:
  bool IsOfEngine(const timeline::BlockSpan& block) const;
  void FindInnerGradients(const timeline::Timeline& timeline);

  std::vector<TorchFrames> of_;
  TorchFrames none_;
  bool is_engine_told_ = false;
  bool are_hooks_seen_ = false;
  std::set<timeline::EventIndex> inner_;  // when blocks of inner gradients were made
};

}  // namespace ashlar::analyses

#endif  // ASHLAR_ANALYZER_ANALYSES_CAUSES_TORCH_FRAMES_H_
