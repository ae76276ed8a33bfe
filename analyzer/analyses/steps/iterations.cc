#include "analyzer/analyses/steps/iterations.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "analyzer/analyses/steps/program_part.h"

namespace ashlar::analyses {
namespace {

using timeline::EventIndex;

constexpr std::size_t kLeastRounds = 3;
constexpr std::size_t kMostLoops = 8;  // one after the other

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

// Whether in half of the rounds lies one of these events.
bool DoRoundsHave(const std::vector<EventIndex>& begins, const std::vector<EventIndex>& events) {
  std::size_t having = 0;
  for (std::size_t i = 0; i + 1 < begins.size(); ++i) {
    const auto event = std::lower_bound(events.begin(), events.end(), begins[i]);
    if (event != events.end() && *event < begins[i + 1]) ++having;
  }
  return 2 * having >= begins.size() - 1;
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

// A loop must free something in its rounds, or, where it follows a training, run passes: one that only makes things is
// a model being built.
struct LoopRules {
  bool is_after_training = false;
  EventIndex new_since = 0;  // its line has no place before this event
};

bool IsAllocation(const trace::Event& event) { return event.action == trace::Action::kAlloc; }

// Whether the autograd engine or a `backward` made a block before an event.
bool HasBackwardBefore(const timeline::Timeline& timeline, const trace::StackTable& stacks, EventIndex end) {
  for (EventIndex at = 0; at < end; ++at) {
    const trace::Event& event = timeline.events()[static_cast<std::size_t>(at)];
    if (!IsAllocation(event)) continue;
    if (event.stack >= stacks.stack_count() || stacks.stack(event.stack).empty()) return true;
    for (const trace::FrameId id : stacks.stack(event.stack)) {
      const std::string& function = stacks.frame(id).function;
      if (function == "backward" || absl::StrContains(function, "torch::autograd::Engine")) return true;
    }
  }
  return false;
}

std::set<trace::StackId> LinesBefore(const timeline::Timeline& timeline, EventIndex end) {
  std::set<trace::StackId> out;
  for (EventIndex at = 0; at < end; ++at) {
    const trace::Event& event = timeline.events()[static_cast<std::size_t>(at)];
    if (IsAllocation(event)) out.insert(event.stack);
  }
  return out;
}

std::vector<EventIndex> LoopIn(const timeline::Timeline& timeline, const trace::StackTable& stacks, EventRange range,
                               const LoopRules& rules) {
  absl::flat_hash_map<trace::StackId, std::vector<EventIndex>> places;
  std::vector<EventIndex> frees;
  std::vector<EventIndex> passes;
  trace::StackId last = trace::kNoStack;
  for (EventIndex at = std::max<EventIndex>(range.begin, 0); at < std::min(range.end, timeline.event_count()); ++at) {
    const trace::Event& event = timeline.events()[static_cast<std::size_t>(at)];
    if (event.action == trace::Action::kFreeRequested) frees.push_back(at);
    if (!IsAllocation(event)) continue;
    if (event.stack != trace::kNoStack && event.stack != last) places[event.stack].push_back(at);
    const bool has_frames = event.stack < stacks.stack_count();
    if (rules.is_after_training && has_frames && IsOfPass(stacks, event.stack)) passes.push_back(at);
    last = event.stack;
  }
  const std::set<trace::StackId> known = LinesBefore(timeline, rules.new_since);
  // The line of a round's first allocation comes first; the lines of a loop inside the round come later.
  const std::vector<EventIndex>* best = nullptr;
  for (const auto& [stack, events] : places) {
    if (best != nullptr && best->front() < events.front()) continue;  // before what takes longer to tell
    if (events.size() < kLeastRounds || known.count(stack) > 0 || !IsProgramLine(stacks, stack)) continue;
    if (!DoRoundsHave(events, frees) && !DoRoundsHave(events, passes)) continue;
    best = &events;
  }
  return best == nullptr ? std::vector<EventIndex>{} : *best;
}

// Loops one after the other, such as an evaluation after a training: each by a line that has no place before it.
std::vector<EventIndex> LoopsOf(const timeline::Timeline& timeline, const trace::StackTable* stacks) {
  std::vector<EventIndex> out = RoundsIn(timeline, stacks, {0, timeline.event_count()});
  for (std::size_t loops = 1; loops < kMostLoops && !out.empty(); ++loops) {
    const EventIndex last = out.back();
    const std::vector<EventIndex> next =
        LoopIn(timeline, *stacks, {last + 1, timeline.event_count()},
               {.is_after_training = HasBackwardBefore(timeline, *stacks, last), .new_since = last});
    if (next.empty()) break;
    out.insert(out.end(), next.begin(), next.end());
  }
  return out;
}

}  // namespace

std::vector<EventIndex> RoundsIn(const timeline::Timeline& timeline, const trace::StackTable* stacks, EventRange range,
                                 bool is_after_training) {
  if (stacks == nullptr) return {};
  return LoopIn(timeline, *stacks, range, {.is_after_training = is_after_training});
}

Iterations::Iterations(const timeline::Timeline& timeline, const trace::StackTable* stacks,
                       absl::Span<const EventRange> steps) {
  const EventIndex end = timeline.event_count();
  if (steps.empty()) {
    begins_ = LoopsOf(timeline, stacks);
    return;
  }
  begins_ = RoundsIn(timeline, stacks, {0, steps.front().begin});
  for (const EventRange& step : steps) begins_.push_back(step.begin);
  std::vector<EventIndex> after = RoundsIn(timeline, stacks, {steps.back().end, end}, true);
  if (after.empty()) after = PassesIn(timeline, stacks, {steps.back().end, end}, steps.back());
  if (after.empty() || after.front() > steps.back().end) begins_.push_back(steps.back().end);
  begins_.insert(begins_.end(), after.begin(), after.end());
}

std::size_t Iterations::At(EventIndex event) const {
  return static_cast<std::size_t>(std::upper_bound(begins_.begin(), begins_.end(), event) - begins_.begin());
}

}  // namespace ashlar::analyses
