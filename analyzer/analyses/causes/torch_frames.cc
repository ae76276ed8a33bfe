#include "analyzer/analyses/causes/torch_frames.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"

namespace ashlar::analyses {
namespace {

// An engine makes more blocks than the program where passes are checkpointed or many are fused.
constexpr double kLeastWithStacks = 0.2;

bool IsModuleFile(const trace::Frame& frame) {
  return absl::EndsWith(absl::StrReplaceAll(frame.file, {{"\\", "/"}}), "torch/nn/modules/module.py");
}

bool IsModuleCall(const trace::Frame& frame) {
  return IsModuleFile(frame) && (frame.function == "_call_impl" || frame.function == "inner");
}

TorchFrames ReadFrames(const trace::StackTable& stacks, trace::StackId stack) {
  TorchFrames out;
  out.part = PartOf(stacks, stack);
  const auto frames = stacks.stack(stack);
  out.has_frames = !frames.empty();
  std::size_t calls = 0;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const trace::Frame& frame = stacks.frame(frames[i]);
    const trace::Frame* const caller = i + 1 < frames.size() ? &stacks.frame(frames[i + 1]) : nullptr;
    out.is_python = out.is_python || IsPythonFrame(frame);
    out.is_forward = out.is_forward || frame.function == "forward" || IsModuleCall(frame);
    out.is_copy = out.is_copy || frame.function == "deepcopy" || frame.function == "__deepcopy__";
    out.is_made_once =
        out.is_made_once || frame.function == "__init__" || (IsModuleFile(frame) && frame.function == "_apply");
    if (frame.function == "_call_impl" && IsModuleFile(frame)) {
      if (++calls == 1 && i > 0) {
        const trace::Frame& inside = stacks.frame(frames[i - 1]);
        out.is_hooked_inside = IsModuleFile(inside) && inside.function == "inner";
      }
    }
    const bool is_called_by_module = caller != nullptr && IsModuleCall(*caller) && !IsModuleFile(frame);
    if (is_called_by_module && !absl::StrContains(frame.function, "forward") && !IsTorchFrame(frame))
      out.is_hook = true;
  }
  out.is_hooked_inside = out.is_hooked_inside && calls >= 2;
  out.is_made_once = out.is_made_once && !out.is_forward;
  return out;
}

}  // namespace

TorchStacks::TorchStacks(const timeline::Timeline& timeline, const trace::StackTable* stacks) {
  if (stacks == nullptr) return;
  for (trace::StackId id = 0; id < stacks->stack_count(); ++id) of_.push_back(ReadFrames(*stacks, id));
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
}

bool TorchStacks::IsBackward(const timeline::BlockSpan& block) const {
  const TorchFrames& frames = Of(block.stack);
  if (frames.has_frames) return frames.part == ProgramPart::kBackward;
  return is_engine_told_ && block.alloc_event >= 0;
}

}  // namespace ashlar::analyses
