#include "analyzer/analyses/steps/iterations.h"

#include <algorithm>
#include <map>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "analyzer/analyses/steps/program_part.h"

namespace ashlar::analyses {
namespace {

using timeline::EventIndex;

constexpr std::size_t kLeastRounds = 3;

// Of a module's call, an optimizer or a backward pass.
bool IsInsideFrame(const trace::Frame& frame) {
  const std::string file = absl::StrReplaceAll(frame.file, {{"\\", "/"}});
  return absl::StrContains(file, "torch/nn/modules/") || absl::StrContains(file, "torch/optim/") ||
         absl::StrContains(file, "torch/autograd/") || frame.function == "forward" || frame.function == "backward" ||
         frame.function == "__init__";
}

bool IsProgramLine(const trace::StackTable& stacks, trace::StackId stack) {
  bool has_python = false;
  for (const trace::FrameId id : stacks.stack(stack)) {
    const trace::Frame& frame = stacks.frame(id);
    if (IsInsideFrame(frame) || absl::StrContains(frame.function, "torch::autograd::Engine")) return false;
    has_python = has_python || IsPythonFrame(frame);
  }
  return has_python;
}

// Whether half of the rounds free something: a loop that only makes things is a model being built.
bool DoRoundsFree(const std::vector<EventIndex>& begins, const std::vector<EventIndex>& frees) {
  std::size_t freeing = 0;
  for (std::size_t i = 0; i + 1 < begins.size(); ++i) {
    const auto free = std::lower_bound(frees.begin(), frees.end(), begins[i]);
    if (free != frees.end() && *free < begins[i + 1]) ++freeing;
  }
  return 2 * freeing >= begins.size() - 1;
}

bool IsOfPass(const trace::StackTable& stacks, trace::StackId stack) {
  bool is_forward = false;
  for (const trace::FrameId id : stacks.stack(stack)) {
    const trace::Frame& frame = stacks.frame(id);
    if (frame.function == "backward" || absl::StrContains(frame.file, "torch/optim/")) return false;
    is_forward = is_forward || frame.function == "forward";
  }
  return is_forward;
}

// Where a range allocates in passes, by stack; without `are_others_allowed` empty where a backward pass runs in it.
std::map<trace::StackId, std::vector<EventIndex>> PassLines(const timeline::Timeline& timeline,
                                                            const trace::StackTable& stacks, EventRange range,
                                                            bool are_others_allowed) {
  std::map<trace::StackId, std::vector<EventIndex>> out;
  for (EventIndex at = std::max<EventIndex>(range.begin, 0); at < std::min(range.end, timeline.event_count()); ++at) {
    const trace::Event& event = timeline.events()[static_cast<std::size_t>(at)];
    if (event.action != trace::Action::kAlloc) continue;
    const bool has_frames = event.stack < stacks.stack_count() && !stacks.stack(event.stack).empty();
    if (!has_frames && !are_others_allowed) return {};  // the autograd engine's: the pass of a step
    if (has_frames && IsOfPass(stacks, event.stack)) out[event.stack].push_back(at);
  }
  return out;
}

std::size_t CountOf(const std::map<trace::StackId, std::vector<EventIndex>>& lines) {
  std::size_t out = 0;
  for (const auto& [stack, events] : lines) out += events.size();
  return out;
}

// Begins of the passes in `range`: a line that comes about once for as many blocks as the pass of `step` has.
std::vector<EventIndex> PassesIn(const timeline::Timeline& timeline, const trace::StackTable* stacks, EventRange range,
                                 EventRange step) {
  if (stacks == nullptr) return {};
  const std::size_t each = CountOf(PassLines(timeline, *stacks, step, true));
  const auto lines = PassLines(timeline, *stacks, range, false);
  if (each < kLeastRounds) return {};
  const std::size_t passes = CountOf(lines) / each;
  const std::vector<EventIndex>* best = nullptr;
  for (const auto& [stack, events] : lines) {
    const bool is_once = events.size() >= kLeastRounds && events.size() <= 2 * passes && 2 * events.size() >= passes;
    if (passes < kLeastRounds || !is_once) continue;
    if (best == nullptr || events.front() < best->front()) best = &events;
  }
  return best == nullptr ? std::vector<EventIndex>{} : *best;
}

}  // namespace

std::vector<EventIndex> RoundsIn(const timeline::Timeline& timeline, const trace::StackTable* stacks,
                                 EventRange range) {
  if (stacks == nullptr) return {};
  absl::flat_hash_map<trace::StackId, std::vector<EventIndex>> places;
  std::vector<EventIndex> frees;
  trace::StackId last = trace::kNoStack;
  for (EventIndex at = std::max<EventIndex>(range.begin, 0); at < std::min(range.end, timeline.event_count()); ++at) {
    const trace::Event& event = timeline.events()[static_cast<std::size_t>(at)];
    if (event.action == trace::Action::kFreeRequested) frees.push_back(at);
    if (event.action != trace::Action::kAlloc) continue;
    if (event.stack != trace::kNoStack && event.stack != last) places[event.stack].push_back(at);
    last = event.stack;
  }
  // The line of a round's first allocation comes first; the lines of a loop inside the round come later.
  const std::vector<EventIndex>* best = nullptr;
  for (const auto& [stack, events] : places) {
    if (best != nullptr && best->front() < events.front()) continue;  // before what takes longer to tell
    if (events.size() < kLeastRounds || !IsProgramLine(*stacks, stack) || !DoRoundsFree(events, frees)) continue;
    best = &events;
  }
  return best == nullptr ? std::vector<EventIndex>{} : *best;
}

Iterations::Iterations(const timeline::Timeline& timeline, const trace::StackTable* stacks,
                       absl::Span<const EventRange> steps) {
  const EventIndex end = timeline.event_count();
  if (steps.empty()) {
    begins_ = RoundsIn(timeline, stacks, {0, end});
    return;
  }
  begins_ = RoundsIn(timeline, stacks, {0, steps.front().begin});
  for (const EventRange& step : steps) begins_.push_back(step.begin);
  std::vector<EventIndex> after = RoundsIn(timeline, stacks, {steps.back().end, end});
  if (after.empty()) after = PassesIn(timeline, stacks, {steps.back().end, end}, steps.back());
  if (after.empty() || after.front() > steps.back().end) begins_.push_back(steps.back().end);
  begins_.insert(begins_.end(), after.begin(), after.end());
}

std::size_t Iterations::At(EventIndex event) const {
  return static_cast<std::size_t>(std::upper_bound(begins_.begin(), begins_.end(), event) - begins_.begin());
}

}  // namespace ashlar::analyses
