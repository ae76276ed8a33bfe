#include "analyzer/analyses/steps/program_part.h"

#include <algorithm>
#include <array>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"

namespace ashlar::analyses {
namespace {

using absl::string_view;

template <std::size_t kCount>
bool IsOneOf(string_view text, const std::array<string_view, kCount>& names) {
  return std::find(names.begin(), names.end(), text) != names.end();
}

std::string WithSlashes(const std::string& path) { return absl::StrReplaceAll(path, {{"\\", "/"}}); }

string_view BaseName(string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == string_view::npos ? path : path.substr(slash + 1);
}

bool IsLoading(const trace::Frame& frame, string_view file) {
  static constexpr std::array<string_view, 5> kFunctions = {
      "load_state_dict", "_load_from_state_dict", "from_pretrained", "load_checkpoint", "_load_pretrained_model"};
  return absl::EndsWith(file, "torch/serialization.py") || IsOneOf(frame.function, kFunctions);
}

bool IsOptimizer(const trace::Frame& frame, string_view file) {
  if (absl::StrContains(file, "torch/optim/")) return !absl::StrContains(file, "lr_scheduler");
  if (frame.function != "step") return false;
  static constexpr std::array<string_view, 9> kWords = {"optim", "adam", "sgd",     "lion",   "adafactor",
                                                        "muon",  "lamb", "shampoo", "rmsprop"};
  const std::string base = absl::AsciiStrToLower(BaseName(file));
  return std::any_of(kWords.begin(), kWords.end(), [&base](string_view word) { return absl::StrContains(base, word); });
}

bool IsBackward(const trace::Frame& frame, bool is_python) {
  if (is_python) return frame.function == "backward";
  return absl::StrContains(frame.function, "torch::autograd::Engine::") ||
         absl::StrContains(frame.function, "torch::autograd::python::PythonEngine::");
}

bool IsEvaluation(const trace::Frame& frame) {
  static constexpr std::array<string_view, 14> kFunctions = {
      "eval",      "evaluate", "evaluation_loop", "evaluation_step",  "eval_step",       "eval_epoch",
      "eval_loop", "validate", "validation_step", "validation_epoch", "prediction_step", "prediction_loop",
      "predict",   "test_step"};
  return IsOneOf(frame.function, kFunctions) || absl::StartsWith(frame.function, "evaluate_") ||
         absl::StartsWith(frame.function, "validate_");
}

bool IsNoGrad(const trace::Frame& frame, string_view file) {
  return frame.function == "decorate_context" && absl::StrContains(file, "torch/");
}

}  // namespace

bool IsPythonFrame(const trace::Frame& frame) { return absl::EndsWith(frame.file, ".py"); }

bool IsTorchFrame(const trace::Frame& frame) {
  return absl::StrContains(frame.file, "/torch/") || absl::StrContains(frame.file, "\\torch\\");
}

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

ProgramPart PartOf(const trace::StackTable& stacks, trace::StackId stack) {
  std::array<bool, 8> seen = {};
  const auto see = [&seen](ProgramPart part) { seen[static_cast<std::size_t>(part)] = true; };
  for (const trace::FrameId id : stacks.stack(stack)) {
    const trace::Frame& frame = stacks.frame(id);
    const bool is_python = IsPythonFrame(frame);
    if (IsBackward(frame, is_python)) see(ProgramPart::kBackward);
    if (!is_python) continue;
    const std::string file = WithSlashes(frame.file);
    if (IsLoading(frame, file)) see(ProgramPart::kLoading);
    if (IsOptimizer(frame, file)) see(ProgramPart::kOptimizer);
    if (IsEvaluation(frame)) see(ProgramPart::kEvaluation);
    if (frame.function == "generate") see(ProgramPart::kGeneration);
    if (IsNoGrad(frame, file)) see(ProgramPart::kNoGrad);
    if (frame.function == "forward") see(ProgramPart::kForward);
  }
  for (std::size_t part = 1; part < seen.size(); ++part) {
    if (seen[part]) return static_cast<ProgramPart>(part);
  }
  return ProgramPart::kUnknown;
}

ProgramParts::ProgramParts(const trace::StackTable* stacks) {
  if (stacks == nullptr) return;
  parts_.reserve(stacks->stack_count());
  for (trace::StackId id = 0; id < stacks->stack_count(); ++id) parts_.push_back(PartOf(*stacks, id));
}

}  // namespace ashlar::analyses
