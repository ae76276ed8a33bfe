#include "analyzer/analyses/steps/iterations.h"

#include <algorithm>
#include <map>
#include <string>

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

}  // namespace

std::vector<EventIndex> RoundsIn(const timeline::Timeline& timeline, const trace::StackTable* stacks,
                                 EventRange range) {
  if (stacks == nullptr) return {};
  std::map<trace::StackId, std::vector<EventIndex>> places;
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
    if (events.size() < kLeastRounds || !IsProgramLine(*stacks, stack) || !DoRoundsFree(events, frees)) continue;
    if (best == nullptr || events.front() < best->front()) best = &events;
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
  const std::vector<EventIndex> after = RoundsIn(timeline, stacks, {steps.back().end, end});
  if (after.empty() || after.front() > steps.back().end) begins_.push_back(steps.back().end);
  begins_.insert(begins_.end(), after.begin(), after.end());
}

std::size_t Iterations::At(EventIndex event) const {
  return static_cast<std::size_t>(std::upper_bound(begins_.begin(), begins_.end(), event) - begins_.begin());
}

EventIndex Iterations::BeginOf(std::size_t iteration) const {
  return iteration == 0 ? timeline::kBeforeWindow : begins_[iteration - 1];
}

}  // namespace ashlar::analyses
