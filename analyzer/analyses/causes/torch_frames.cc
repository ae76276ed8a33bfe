#include "analyzer/analyses/causes/torch_frames.h"

#include <algorithm>
#include <set>
#include <string>
#include <tuple>

#include "absl/strings/match.h"

namespace ashlar::analyses {
namespace {

// An engine makes more blocks than the program where passes are checkpointed or many are fused.
constexpr double kLeastWithStacks = 0.2;
// Of what calls of torch.autograd.grad made: still there two calls later. A training that takes its gradients by them
// lets them go by then.
constexpr double kLeastInnerKept = 0.25;

bool IsModuleFile(const trace::Frame& frame) { return absl::EndsWith(frame.file, "torch/nn/modules/module.py"); }

bool IsModuleCall(const trace::Frame& frame) {
  return IsModuleFile(frame) && (frame.function == "_call_impl" || frame.function == "inner");
}

bool IsNamedForward(const trace::Frame& frame) { return absl::StrContains(frame.function, "forward"); }

// Lines of module.py that call a `forward`.
using ForwardLines = std::set<std::pair<std::string, std::int64_t>>;

std::pair<std::string, std::int64_t> LineOf(const trace::Frame& frame) {
  return {frame.function, static_cast<std::int64_t>(frame.line)};
}

ForwardLines FindForwardLines(const trace::StackTable& stacks) {
  ForwardLines out;
  for (trace::StackId id = 0; id < stacks.stack_count(); ++id) {
    const auto frames = stacks.stack(id);
    for (std::size_t i = 0; i + 1 < frames.size(); ++i) {
      const trace::Frame& caller = stacks.frame(frames[i + 1]);
      if (IsModuleCall(caller) && IsNamedForward(stacks.frame(frames[i]))) out.insert(LineOf(caller));
    }
  }
  return out;
}

// A parameter or buffer being made, moved, initialized or loaded.
bool IsModelFrame(const trace::Frame& frame) {
  const std::string& file = frame.file;
  if (absl::EndsWith(file, "torch/nn/parameter.py")) return frame.function != "__deepcopy__";
  if (absl::EndsWith(file, "torch/nn/init.py") || absl::EndsWith(file, "safetensors/torch.py")) return true;
  if (absl::StrContains(file, "torch/nn/modules/") && frame.function == "__init__") return true;
  return IsModuleFile(frame) && frame.function == "_apply";
}

bool IsFileOf(const trace::Frame& frame, absl::string_view file) { return absl::EndsWith(frame.file, file); }

bool IsGradientCall(const trace::Frame& frame) {
  return frame.function == "grad" && IsFileOf(frame, "torch/autograd/__init__.py");
}

bool IsDropout(const trace::Frame& frame) {
  return absl::StrContains(frame.function, "dropout") && IsFileOf(frame, "torch/nn/functional.py");
}

bool IsLoss(const trace::Frame& frame) {
  if (IsFileOf(frame, "torch/nn/modules/loss.py")) return true;
  const bool is_named = absl::StrContains(frame.function, "loss") || absl::StrContains(frame.function, "cross_entropy");
  return is_named && IsFileOf(frame, "torch/nn/functional.py");
}

// An optimizer is decorated so too, and records gradients again for its closure.
bool IsWithoutGrad(const trace::StackTable& stacks, absl::Span<const trace::FrameId> frames) {
  for (auto id = frames.rbegin(); id != frames.rend(); ++id) {
    const trace::Frame& frame = stacks.frame(*id);
    if (absl::StrContains(frame.file, "torch/optim/")) return false;
    if (frame.function == "decorate_context" && IsTorchFrame(frame)) return true;
  }
  return false;
}

// Whether a module called a function that is neither its `forward` nor around it.
bool IsHookCall(const trace::StackTable& stacks, absl::Span<const trace::FrameId> frames, std::size_t at,
                const ForwardLines& forward_lines) {
  const trace::Frame& frame = stacks.frame(frames[at]);
  const trace::Frame& caller = stacks.frame(frames[at + 1]);
  if (!IsModuleCall(caller) || IsModuleFile(frame) || IsNamedForward(frame) || IsTorchFrame(frame)) return false;
  if (caller.line > 0 && forward_lines.count(LineOf(caller)) > 0) return false;
  for (std::size_t inside = 0; inside < at; ++inside) {
    if (IsNamedForward(stacks.frame(frames[inside]))) return false;
  }
  return true;
}

TorchFrames ReadFrames(const trace::StackTable& stacks, trace::StackId stack, ProgramPart part,
                       const ForwardLines& forward_lines) {
  TorchFrames out;
  out.part = part;
  const auto frames = stacks.stack(stack);
  out.has_frames = !frames.empty();
  out.is_without_grad = IsWithoutGrad(stacks, frames);
  std::size_t calls = 0;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const trace::Frame& frame = stacks.frame(frames[i]);
    out.is_python = out.is_python || IsPythonFrame(frame);
    out.is_forward = out.is_forward || frame.function == "forward" || IsModuleCall(frame);
    out.is_copy = out.is_copy || frame.function == "deepcopy" || frame.function == "__deepcopy__";
    out.is_made_once =
        out.is_made_once || frame.function == "__init__" || (IsModuleFile(frame) && frame.function == "_apply");
    out.is_gradient_call = out.is_gradient_call || IsGradientCall(frame);
    out.is_training_mode = out.is_training_mode || IsDropout(frame);
    out.is_loss = out.is_loss || IsLoss(frame);
    out.calls_hooks = out.calls_hooks || (IsModuleFile(frame) && frame.function == "inner");
    if (frame.function == "_call_impl" && IsModuleFile(frame)) {
      if (++calls == 1 && i > 0) {
        const trace::Frame& inside = stacks.frame(frames[i - 1]);
        out.is_hooked_inside = IsModuleFile(inside) && inside.function == "inner";
      }
    }
    out.is_of_model = out.is_of_model || IsModelFrame(frame);
    out.is_hook = out.is_hook || (i + 1 < frames.size() && IsHookCall(stacks, frames, i, forward_lines));
  }
  out.is_hooked_inside = out.is_hooked_inside && calls >= 2;
  out.is_made_once = out.is_made_once && !out.is_forward;
  out.is_of_model = (out.is_of_model || out.part == ProgramPart::kLoading) && !out.is_forward && !out.is_copy;
  return out;
}

}  // namespace

TorchStacks::TorchStacks(const timeline::Timeline& timeline, const trace::StackTable* stacks) {
  if (stacks == nullptr) return;
  const ForwardLines forward_lines = FindForwardLines(*stacks);
  const ProgramParts parts(stacks);
  for (trace::StackId id = 0; id < stacks->stack_count(); ++id) {
    of_.push_back(ReadFrames(*stacks, id, parts.Of(id), forward_lines));
    are_hooks_seen_ = are_hooks_seen_ || of_.back().is_hook || of_.back().calls_hooks;
  }
  std::size_t with = 0;
  bool has_python = false;
  std::size_t all = 0;
  for (const timeline::BlockSpan& block : timeline.blocks()) {
    if (block.alloc_event < 0) continue;
    ++all;
    if (Of(block.stack).has_frames) ++with;
    has_python = has_python || Of(block.stack).is_python;
  }
  is_engine_told_ = has_python && kLeastWithStacks * static_cast<double>(all) < static_cast<double>(with);
  FindInnerGradients(timeline);
}

bool TorchStacks::IsOfEngine(const timeline::BlockSpan& block) const {
  const TorchFrames& frames = Of(block.stack);
  if (frames.has_frames) return frames.part == ProgramPart::kBackward && !frames.is_python;
  return is_engine_told_ && block.alloc_event >= 0;
}

void TorchStacks::FindInnerGradients(const timeline::Timeline& timeline) {
  struct Call {
    timeline::EventIndex begin = 0;
    std::vector<const timeline::BlockSpan*> made = {};
  };
  std::vector<Call> calls;
  bool is_in_call = false;
  for (const timeline::BlockSpan& block : timeline.blocks()) {
    const TorchFrames& frames = Of(block.stack);
    if (frames.is_gradient_call && !is_in_call) calls.push_back({block.alloc_event});
    if (frames.is_python) is_in_call = frames.is_gradient_call;
    if (is_in_call && IsOfEngine(block)) calls.back().made.push_back(&block);
  }
  std::size_t made = 0;
  std::size_t kept = 0;
  for (std::size_t i = 0; i + 2 < calls.size(); ++i) {
    const auto is_kept = [&](const auto* block) { return block->free_requested_event > calls[i + 2].begin; };
    made += calls[i].made.size();
    kept += static_cast<std::size_t>(std::count_if(calls[i].made.begin(), calls[i].made.end(), is_kept));
  }
  if (made == 0 || static_cast<double>(kept) < kLeastInnerKept * static_cast<double>(made)) return;
  for (const Call& call : calls) {
    for (const timeline::BlockSpan* block : call.made) inner_.insert(block->alloc_event);
  }
}

bool TorchStacks::IsBackward(const timeline::BlockSpan& block) const {
  if (IsInnerGradient(block)) return false;
  return IsOfEngine(block) || Of(block.stack).part == ProgramPart::kBackward;
}

}  // namespace ashlar::analyses
