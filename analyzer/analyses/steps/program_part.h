// Names the part of a training or inference program that a call stack belongs to, by the names in the stack. The names
// are PyTorch's own (its autograd engine, torch/optim, torch/nn, torch/serialization.py) and the customs of programs
// written for it (`forward`, `evaluate`, `prediction_step`); a program that names things otherwise stays kUnknown. The
// first rule that holds decides:
//
//   loading     torch/serialization.py, load_state_dict, from_pretrained, load_checkpoint
//   optimizer   torch/optim (not lr_scheduler), or `step` in a file named after an optimizer
//   backward    torch::autograd::Engine, or a Python frame `backward` (a checkpoint's recomputation is part of it)
//   evaluation  evaluate, validate, eval_step, prediction_step, ...
//   generation  generate
//   no_grad     a function decorated with torch.no_grad or torch.inference_mode
//   forward     `forward` of a module
//
// A `with torch.no_grad():` block leaves no frame: forward there is called forward. Pure functions.
#ifndef ASHLAR_ANALYZER_ANALYSES_STEPS_PROGRAM_PART_H_
#define ASHLAR_ANALYZER_ANALYSES_STEPS_PROGRAM_PART_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "allocator/trace/stack_table.h"

namespace ashlar::analyses {

enum class ProgramPart : std::uint8_t {
  kUnknown,
  kLoading,
  kOptimizer,
  kBackward,
  kEvaluation,
  kGeneration,
  kNoGrad,
  kForward,
};

absl::string_view ProgramPartName(ProgramPart part);  // "forward"; empty for kUnknown

// Nothing is trained there: an evaluation, a generation, a function without gradients.
inline bool IsEvaluating(ProgramPart part) {
  return part == ProgramPart::kEvaluation || part == ProgramPart::kNoGrad || part == ProgramPart::kGeneration;
}
inline bool IsTraining(ProgramPart part) {
  return part == ProgramPart::kForward || part == ProgramPart::kBackward || part == ProgramPart::kOptimizer;
}

// Of every stack of a table, asked for by id; kUnknown for kNoStack. Looks at each stack once.
class ProgramParts {
 public:
  explicit ProgramParts(const trace::StackTable* stacks);  // nullptr: all unknown
  ProgramPart Of(trace::StackId stack) const { return stack < parts_.size() ? parts_[stack] : ProgramPart::kUnknown; }

 private:
  std::vector<ProgramPart> parts_;
};

bool IsPythonFrame(const trace::Frame& frame);
// A Python function `backward`, or the autograd engine's C++.
bool IsBackwardFrame(const trace::Frame& frame);
// Of PyTorch itself, as opposed to the user's code and other packages.
bool IsTorchFrame(const trace::Frame& frame);

}  // namespace ashlar::analyses

#endif  // ASHLAR_ANALYZER_ANALYSES_STEPS_PROGRAM_PART_H_
