#include "analyzer/analyses/steps/program_part.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace ashlar::analyses {
namespace {

using absl::string_view;

template <std::size_t kCount>
bool IsOneOf(string_view text, const std::array<string_view, kCount>& names) {
  return std::find(names.begin(), names.end(), text) != names.end();
}

string_view BaseName(string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == string_view::npos ? path : path.substr(slash + 1);
}

bool IsLoading(const trace::Frame& frame) {
  static constexpr std::array<string_view, 5> kFunctions = {
      "load_state_dict", "_load_from_state_dict", "from_pretrained", "load_checkpoint", "_load_pretrained_model"};
  return absl::EndsWith(frame.file, "torch/serialization.py") || IsOneOf(frame.function, kFunctions);
}

bool IsTorchOptim(const trace::Frame& frame) {
  return absl::StrContains(frame.file, "torch/optim/") && !absl::StrContains(frame.file, "lr_scheduler");
}

// An optimizer that is no class of PyTorch, as far as names can tell.
bool IsNamedOptimizerStep(const trace::Frame& frame) {
  if (frame.function != "step") return false;
  static constexpr std::array<string_view, 9> kWords = {"optim", "adam", "sgd",     "lion",   "adafactor",
                                                        "muon",  "lamb", "shampoo", "rmsprop"};
  const std::string base = absl::AsciiStrToLower(BaseName(frame.file));
  return std::any_of(kWords.begin(), kWords.end(), [&base](string_view word) { return absl::StrContains(base, word); });
}

bool IsEvaluation(const trace::Frame& frame) {
  static constexpr std::array<string_view, 14> kFunctions = {
      "eval",      "evaluate", "evaluation_loop", "evaluation_step",  "eval_step",       "eval_epoch",
      "eval_loop", "validate", "validation_step", "validation_epoch", "prediction_step", "prediction_loop",
      "predict",   "test_step"};
  return IsOneOf(frame.function, kFunctions) || absl::StartsWith(frame.function, "evaluate_") ||
         absl::StartsWith(frame.function, "validate_");
}

// What a training calls for its loss: an evaluation by name inside of it is a part of the training.
bool IsTrainingCall(const trace::Frame& frame) {
  static constexpr std::array<string_view, 4> kFunctions = {"forward", "training_step", "train_step", "compute_loss"};
  return IsOneOf(frame.function, kFunctions);
}

bool IsContextCall(const trace::Frame& frame) {
  return frame.function == "decorate_context" && absl::StrContains(frame.file, "torch/");
}

bool RunsModule(const trace::Frame& frame) {
  return frame.function == "forward" ||
         (frame.function == "_call_impl" && absl::EndsWith(frame.file, "torch/nn/modules/module.py"));
}

bool IsOfTorch(const trace::Frame& frame) {
  return IsTorchFrame(frame) || absl::StrContains(frame.file, "torchinductor");
}

// Those of Python; innermost first.
std::vector<const trace::Frame*> CallFramesOf(const trace::StackTable& stacks, trace::StackId stack) {
  std::vector<const trace::Frame*> out;
  for (const trace::FrameId id : stacks.stack(stack)) {
    if (const trace::Frame& frame = stacks.frame(id); IsPythonFrame(frame)) out.push_back(&frame);
  }
  return out;
}

using NamedFunction = std::pair<std::string, std::string>;  // file, function

// Functions `step` that run a module: steps of a training, whatever their files are called.
std::set<NamedFunction> FindTrainingSteps(const trace::StackTable& stacks) {
  std::set<NamedFunction> out;
  for (trace::StackId id = 0; id < stacks.stack_count(); ++id) {
    bool is_inside_pass = false;
    for (const trace::Frame* frame : CallFramesOf(stacks, id)) {
      if (is_inside_pass && IsNamedOptimizerStep(*frame)) out.insert({frame->file, frame->function});
      is_inside_pass = is_inside_pass || RunsModule(*frame);
    }
  }
  return out;
}

// Whether an optimizer made the block: between its innermost frame and the block lies nothing that the program handed
// to it, such as a closure that computes the loss.
bool IsMadeByOptimizer(const std::vector<const trace::Frame*>& frames, const std::set<NamedFunction>& training_steps) {
  const trace::Frame* inside = nullptr;  // the outermost frame so far that is not PyTorch's
  for (const trace::Frame* frame : frames) {
    if (RunsModule(*frame) || absl::StrContains(frame->function, "closure")) return false;
    if (IsTorchOptim(*frame)) return inside == nullptr || inside->function == "step";
    if (IsNamedOptimizerStep(*frame)) return training_steps.count({frame->file, frame->function}) == 0;
    if (!IsOfTorch(*frame)) inside = frame;
  }
  return false;
}

ProgramPart PartOf(const trace::StackTable& stacks, trace::StackId stack,
                   const std::set<NamedFunction>& training_steps) {
  std::array<bool, 8> seen = {};
  const auto see = [&seen](ProgramPart part) { seen[static_cast<std::size_t>(part)] = true; };
  for (const trace::FrameId id : stacks.stack(stack)) {
    if (IsBackwardFrame(stacks.frame(id))) see(ProgramPart::kBackward);
  }
  const std::vector<const trace::Frame*> frames = CallFramesOf(stacks, stack);
  if (IsMadeByOptimizer(frames, training_steps)) see(ProgramPart::kOptimizer);
  bool is_in_training = false;
  bool is_in_optimizer =
      false;  // it works without gradients, and records them again for its closure by the same wrapper
  for (auto call = frames.rbegin(); call != frames.rend(); ++call) {
    const trace::Frame& frame = **call;
    if (IsLoading(frame)) see(ProgramPart::kLoading);
    if (!is_in_training && IsEvaluation(frame)) see(ProgramPart::kEvaluation);
    if (frame.function == "generate") see(ProgramPart::kGeneration);
    if (!is_in_optimizer && IsContextCall(frame)) see(ProgramPart::kNoGrad);
    if (frame.function == "forward") see(ProgramPart::kForward);
    is_in_training = is_in_training || IsTrainingCall(frame);
    is_in_optimizer = is_in_optimizer || IsTorchOptim(frame);
  }
  for (std::size_t part = 1; part < seen.size(); ++part) {
    if (seen[part]) return static_cast<ProgramPart>(part);
  }
  return ProgramPart::kUnknown;
}

}  // namespace

bool IsPythonFrame(const trace::Frame& frame) { return absl::EndsWith(frame.file, ".py"); }

bool IsBackwardFrame(const trace::Frame& frame) {
  if (IsPythonFrame(frame)) return frame.function == "backward";
  return absl::StrContains(frame.function, "torch::autograd::Engine::") ||
         absl::StrContains(frame.function, "torch::autograd::python::PythonEngine::");
}

bool IsTorchFrame(const trace::Frame& frame) { return absl::StrContains(frame.file, "/torch/"); }

string_view ProgramPartName(ProgramPart part) {
  switch (part) {
    case ProgramPart::kUnknown:
      return "";
    case ProgramPart::kLoading:
      return "loading";
    case ProgramPart::kOptimizer:
      return "optimizer";
    case ProgramPart::kBackward:
      return "backward";
    case ProgramPart::kEvaluation:
      return "evaluation";
    case ProgramPart::kGeneration:
      return "generation";
    case ProgramPart::kNoGrad:
      return "no_grad";
    case ProgramPart::kForward:
      return "forward";
  }
  return "";
}

ProgramParts::ProgramParts(const trace::StackTable* stacks) {
  if (stacks == nullptr) return;
  parts_.reserve(stacks->stack_count());
  const std::set<NamedFunction> training_steps = FindTrainingSteps(*stacks);
  for (trace::StackId id = 0; id < stacks->stack_count(); ++id) {
    parts_.push_back(PartOf(*stacks, id, training_steps));
  }
}

}  // namespace ashlar::analyses
