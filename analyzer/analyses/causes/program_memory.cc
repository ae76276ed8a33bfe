#include "analyzer/analyses/causes/program_memory.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "allocator/base/units.h"
#include "analyzer/analyses/causes/evidence.h"
#include "analyzer/analyses/causes/torch_frames.h"
#include "analyzer/analyses/holders/variables.h"

namespace ashlar::analyses {
namespace {

using timeline::EventIndex;

// A pass forward that is made anew within the backward pass: torch/utils/checkpoint.py, on autograd's own thread.
bool IsRecomputedFrame(const trace::Frame& frame) {
  const bool is_hook = frame.function == "unpack_hook" || frame.function == "recompute_fn";
  return is_hook && absl::StrContains(frame.file, "checkpoint");
}

bool IsDeepCopyCall(const trace::Frame& frame) { return frame.function == "deepcopy"; }

bool IsForwardPart(ProgramPart part) {
  return part == ProgramPart::kForward || part == ProgramPart::kGeneration || part == ProgramPart::kEvaluation;
}

// From its first block to the end of its backward pass.
bool IsWithin(const Pass& pass, EventIndex event) {
  return event >= pass.begin && (pass.last_backward < 0 || event <= pass.last_backward);
}

std::uint64_t SumOfSizes(const SizeCounts& counts) {
  std::uint64_t out = 0;
  for (const auto& [bytes, count] : counts) out += bytes * count;
  return out;
}

}  // namespace

ProgramMemory::ProgramMemory(const CauseContext& context) : context_(context), timeline_(*context.history->timeline) {
  FindParts();
  FindPasses();
  Sort();
  FindTrained();
}

void ProgramMemory::FindParts() {
  const trace::StackTable& stacks = *context_.history->stacks;
  const ProgramParts parts(&stacks);
  std::vector<ProgramPart> of_stacks;
  for (trace::StackId id = 0; id < stacks.stack_count(); ++id) {
    const ProgramPart part = parts.Of(id);
    const bool is_recomputed = AnyFrame(context_, id, IsRecomputedFrame);
    if (is_recomputed) recomputing_.insert(id);
    of_stacks.push_back(is_recomputed || stacks.stack(id).empty() ? ProgramPart::kBackward : part);
  }
  const TorchStacks frames(timeline_, &stacks);
  is_of_inner_loop_ = frames.AreGradientsInner();
  for (const timeline::BlockSpan& block : timeline_.blocks()) {
    const bool has_stack = block.stack < of_stacks.size();
    const ProgramPart without = block.alloc_event >= 0 ? ProgramPart::kBackward : ProgramPart::kUnknown;
    const ProgramPart part = has_stack ? of_stacks[block.stack] : without;
    block_parts_.push_back(frames.IsInnerGradient(block) ? ProgramPart::kForward : part);
    are_of_model_.push_back(frames.Of(block.stack).is_of_model);
  }
}

std::uint64_t ProgramMemory::RequestedBytes(std::size_t index) const {
  const timeline::BlockSpan& block = timeline_.blocks()[index];
  return block.AskedBytes();
}

std::uint64_t ProgramMemory::BytesOf(const std::vector<std::size_t>& indices) const {
  std::uint64_t out = 0;
  for (const std::size_t index : indices) out += timeline_.blocks()[index].size_bytes;
  return out;
}

SizeCounts ProgramMemory::SizesOf(const std::vector<std::size_t>& indices) const {
  SizeCounts out;
  for (const std::size_t index : indices) ++out[RequestedBytes(index)];
  return out;
}

void ProgramMemory::FindPasses() {
  bool is_forward = false;
  for (std::size_t i = 0; i < timeline_.blocks().size(); ++i) {
    const EventIndex event = timeline_.blocks()[i].alloc_event;
    if (event < 0) continue;
    const ProgramPart part = PartOfBlock(i);
    if (IsForwardPart(part)) {
      if (!is_forward) {
        if (!passes_.empty()) passes_.back().end = event;
        passes_.push_back({.begin = event});
      }
      is_forward = true;
      ++passes_.back().forward_blocks;
    } else if (part == ProgramPart::kBackward || part == ProgramPart::kOptimizer) {
      is_forward = false;
      if (passes_.empty() || part == ProgramPart::kOptimizer) continue;
      passes_.back().backward = std::min(passes_.back().backward, event);
      passes_.back().last_backward = event;
    } else if (are_of_model_[i]) {
      is_forward = false;  // a model is made between passes: what ran before it, such as an evaluation, is over
    }
  }
  for (std::size_t i = 0; i < passes_.size(); ++i) {
    if (passes_[i].begin <= context_.history->moment) current_ = i;
  }
}

// Lines of which half of what they made before the pass is alive.
std::set<trace::StackId> ProgramMemory::KeepingStacks() const {
  std::map<trace::StackId, std::pair<std::size_t, std::size_t>> made_and_alive;
  for (const timeline::BlockSpan& block : timeline_.blocks()) {
    if (Current() == nullptr || block.alloc_event >= Current()->begin) break;
    auto& [made, alive] = made_and_alive[block.stack];
    ++made;
    if (block.IsLiveAfter(context_.history->moment)) ++alive;
  }
  std::set<trace::StackId> out;
  for (const auto& [stack, counts] : made_and_alive) {
    if (2 * counts.second >= counts.first) out.insert(stack);
  }
  return out;
}

void ProgramMemory::Sort() {
  const Pass* const pass = Current();
  const std::set<trace::StackId> keeping = KeepingStacks();
  const auto is_of_pass = [&](const timeline::BlockSpan& block) {
    if (IsWithin(*pass, block.alloc_event)) return true;
    if (block.alloc_event < pass->begin) return false;
    return pass->end == timeline::kNever ? keeping.count(block.stack) == 0 : !block.IsLiveAfter(pass->end);
  };
  const auto is_later_copy = [&](const timeline::BlockSpan& block) {
    return pass != nullptr && pass->last_backward >= 0 && block.alloc_event > pass->last_backward &&
           block.stack != trace::kNoStack && AnyFrame(context_, block.stack, IsDeepCopyCall);
  };
  for (std::size_t i = 0; i < timeline_.blocks().size(); ++i) {
    const timeline::BlockSpan& block = timeline_.blocks()[i];
    if (!block.IsLiveAfter(context_.history->moment)) continue;
    const ProgramPart part = PartOfBlock(i);
    if (const std::optional<std::vector<std::size_t>*> owned = ListOfOwner(i); owned.has_value()) {
      if (*owned != nullptr) (*owned)->push_back(i);
    } else if (part == ProgramPart::kOptimizer) {
      state_.push_back(i);
    } else if (part == ProgramPart::kBackward) {
      (recomputing_.count(block.stack) > 0 ? recomputed_ : gradients_).push_back(i);
    } else if (pass != nullptr && !is_later_copy(block) && is_of_pass(block)) {
      if (part != ProgramPart::kNoGrad) activations_.push_back(i);
    } else if (is_later_copy(block) || !IsForwardPart(part)) {
      lasting_.push_back(i);
    }
  }
}

// By the owner, where that decides; nullptr: into none. What has no variable of its own goes by its line.
std::optional<std::vector<std::size_t>*> ProgramMemory::ListOfOwner(std::size_t index) {
  const HeldByName* const held = context_.history->Owners();
  const trace::Holder* const owner = held == nullptr ? nullptr : held->OwnerOf(index);
  if (owner == nullptr) return std::nullopt;
  switch (RoleOf(*owner)) {
    case OwnerRole::kWeights:
      return &lasting_;
    case OwnerRole::kGradient:
      return &gradients_;
    case OwnerRole::kOptimizer:
      return &state_;
    case OwnerRole::kGraph:
      return &activations_;
    case OwnerRole::kVariable: {
      if (owner->kind == "local" || owner->Is("in_call")) return std::nullopt;
      const bool is_older = Current() != nullptr && timeline_.blocks()[index].alloc_event < Current()->begin;
      if (is_older) return &lasting_;
      if (!absl::StrContains(owner->name, "[]")) return std::nullopt;  // a list may keep what many passes made
      return nullptr;
    }
    case OwnerRole::kHook:
    case OwnerRole::kError:
    case OwnerRole::kCycle:
      return nullptr;
    default:
      return std::nullopt;
  }
}

void ProgramMemory::FindTrained() {
  for (const Pass& pass : passes_) {
    if (pass.last_backward < 0) continue;
    const EventIndex end = pass.last_backward;
    SizeCounts left;
    const auto blocks = timeline_.blocks();
    const auto first =
        std::lower_bound(blocks.begin(), blocks.end(), pass.backward,
                         [](const timeline::BlockSpan& block, EventIndex event) { return block.alloc_event < event; });
    for (auto i = static_cast<std::size_t>(first - blocks.begin()); i < blocks.size(); ++i) {
      if (blocks[i].alloc_event > end) break;
      if (blocks[i].IsLiveAfter(end) && PartOfBlock(i) == ProgramPart::kBackward) ++left[RequestedBytes(i)];
    }
    if (SumOfSizes(left) > SumOfSizes(trained_)) trained_ = std::move(left);
  }
}

std::optional<double> ProgramMemory::TimesEarlierPasses() const {
  constexpr std::uint64_t kLeastBytes = 64 * kKiB;
  constexpr std::size_t kLeastLines = 3;
  if (Current() == nullptr) return std::nullopt;
  std::map<trace::StackId, std::pair<std::uint64_t, std::uint64_t>> earlier_and_now;
  for (std::size_t i = 0; i < timeline_.blocks().size(); ++i) {
    const timeline::BlockSpan& block = timeline_.blocks()[i];
    const bool is_of_pass = block.alloc_event >= passes_.front().begin && block.alloc_event <= context_.history->moment;
    if (!is_of_pass || !IsForwardPart(PartOfBlock(i))) continue;
    auto& [earlier, now] = earlier_and_now[block.stack];
    std::uint64_t& most = block.alloc_event < Current()->begin ? earlier : now;
    most = std::max(most, RequestedBytes(i));
  }
  std::vector<double> times;
  for (const auto& [stack, most] : earlier_and_now) {
    if (std::min(most.first, most.second) < kLeastBytes) continue;
    times.push_back(static_cast<double>(most.second) / static_cast<double>(most.first));
  }
  if (times.size() < kLeastLines) return std::nullopt;
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

}  // namespace ashlar::analyses
