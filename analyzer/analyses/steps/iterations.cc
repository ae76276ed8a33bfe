#include "analyzer/analyses/steps/iterations.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "analyzer/analyses/steps/program_part.h"

namespace ashlar::analyses {
namespace {

using timeline::EventIndex;

constexpr std::size_t kLeastRounds = 3;

// Of a module's call, an optimizer or a backward pass.
bool IsInsideFrame(const trace::Frame& frame) {
  const std::string& file = frame.file;
  return absl::StrContains(file, "torch/nn/modules/") || absl::StrContains(file, "torch/optim/") ||
         absl::StrContains(file, "torch/autograd/") || frame.function == "forward" || frame.function == "__init__" ||
         IsBackwardFrame(frame);
}

bool IsProgramLine(const trace::StackTable& stacks, trace::StackId stack) {
  bool has_python = false;
  for (const trace::FrameId id : stacks.stack(stack)) {
    const trace::Frame& frame = stacks.frame(id);
    if (IsInsideFrame(frame)) return false;
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

enum class PassKind : std::uint8_t { kUnknown, kNone, kForward, kBackward };

PassKind PassOf(const trace::StackTable& stacks, trace::StackId stack) {
  // The threads of the autograd engine run no Python: what has no frames is theirs.
  if (stack >= stacks.stack_count() || stacks.stack(stack).empty()) return PassKind::kBackward;
  bool is_forward = false;
  bool is_optimizer = false;
  for (const trace::FrameId id : stacks.stack(stack)) {
    const trace::Frame& frame = stacks.frame(id);
    if (IsBackwardFrame(frame)) return PassKind::kBackward;
    is_optimizer = is_optimizer || absl::StrContains(frame.file, "torch/optim/");
    is_forward = is_forward || frame.function == "forward";
  }
  return is_forward && !is_optimizer ? PassKind::kForward : PassKind::kNone;
}

// Each stack is told once, however many events have it.
class PassesOfStacks {
 public:
  explicit PassesOfStacks(const trace::StackTable& stacks) : stacks_(stacks), known_(stacks.stack_count()) {}

  const trace::StackTable& stacks() const { return stacks_; }

  PassKind Of(trace::StackId stack) {
    if (stack >= known_.size()) return PassKind::kBackward;
    PassKind& known = known_[stack];
    if (known == PassKind::kUnknown) known = PassOf(stacks_, stack);
    return known;
  }

 private:
  const trace::StackTable& stacks_;
  std::vector<PassKind> known_;  // by stack
};

// What a pass allocates, in order: the event, and the frames of the stack up to the outermost `forward`, by number.
struct PassRequest {
  EventIndex event = 0;
  std::size_t frames = 0;
};

class PassReader {
 public:
  PassReader(const timeline::Timeline& timeline, PassesOfStacks& passes) : timeline_(timeline), passes_(passes) {}

  // Without `are_others_allowed` empty where a backward pass runs in the range.
  std::vector<PassRequest> Read(EventRange range, bool are_others_allowed) {
    std::vector<PassRequest> out;
    for (EventIndex at = std::max<EventIndex>(range.begin, 0); at < std::min(range.end, timeline_.event_count());
         ++at) {
      const trace::Event& event = timeline_.events()[static_cast<std::size_t>(at)];
      if (event.action != trace::Action::kAlloc) continue;
      const PassKind pass = passes_.Of(event.stack);
      if (pass == PassKind::kForward) {
        out.push_back({at, FramesOf(event.stack)});
      } else if (!are_others_allowed && pass == PassKind::kBackward) {
        return {};  // the pass of a step
      }
    }
    return out;
  }

 private:
  std::size_t FramesOf(trace::StackId stack) {
    const auto frames = passes_.stacks().stack(stack);
    std::size_t end = frames.size();
    while (end > 0 && passes_.stacks().frame(frames[end - 1]).function != "forward") --end;
    const std::size_t next = numbers_.size();
    return numbers_.try_emplace({frames.begin(), frames.begin() + static_cast<std::ptrdiff_t>(end)}, next)
        .first->second;
  }

  const timeline::Timeline& timeline_;
  PassesOfStacks& passes_;
  std::map<std::vector<trace::FrameId>, std::size_t> numbers_;
};

void KeepCommon(std::vector<PassRequest>& requests, const std::vector<PassRequest>& others) {
  std::set<std::size_t> common;
  for (const PassRequest& other : others) common.insert(other.frames);
  requests.erase(std::remove_if(requests.begin(), requests.end(),
                                [&common](const PassRequest& one) { return common.count(one.frames) == 0; }),
                 requests.end());
}

// Begins of the passes in `range`: where it allocates again and again what the pass of `step` does, in its order. More
// layers of a deeper model are no passes.
std::vector<EventIndex> PassesIn(const timeline::Timeline& timeline, PassesOfStacks& kinds, EventRange range,
                                 EventRange step) {
  PassReader reader(timeline, kinds);
  std::vector<PassRequest> each = reader.Read(step, true);
  std::vector<PassRequest> requests = reader.Read(range, false);
  KeepCommon(each, requests);
  KeepCommon(requests, each);
  if (each.size() < kLeastRounds || requests.size() < kLeastRounds * each.size()) return {};
  std::vector<EventIndex> out;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (requests[i].frames != each[i % each.size()].frames) return {};
    if (i % each.size() == 0) out.push_back(requests[i].event);
  }
  return out;
}

// Begins of the rounds after the last backward pass of a step that run a module each: an evaluation in each epoch,
// where epochs are the steps.
std::vector<EventIndex> PassesAfterBackward(const timeline::Timeline& timeline, PassesOfStacks& kinds,
                                            EventRange step) {
  EventIndex last = timeline::kBeforeWindow;
  std::vector<EventIndex> passes;
  for (EventIndex at = std::max<EventIndex>(step.begin, 0); at < std::min(step.end, timeline.event_count()); ++at) {
    const trace::Event& event = timeline.events()[static_cast<std::size_t>(at)];
    if (event.action != trace::Action::kAlloc) continue;
    const PassKind pass = kinds.Of(event.stack);
    if (pass == PassKind::kForward) passes.push_back(at);
    if (pass == PassKind::kBackward) last = at;
  }
  if (last < 0) return {};
  std::vector<EventIndex> begins = RoundsIn(timeline, &kinds.stacks(), {last + 1, step.end});
  std::size_t running = 0;
  for (std::size_t i = 0; i < begins.size(); ++i) {
    const auto pass = std::lower_bound(passes.begin(), passes.end(), begins[i]);
    if (pass != passes.end() && (i + 1 == begins.size() || *pass < begins[i + 1])) ++running;
  }
  return running < kLeastRounds ? std::vector<EventIndex>{} : begins;
}

// As RoundsIn has it, by lines that are not among `others`.
std::vector<EventIndex> RoundsOfOtherLines(const timeline::Timeline& timeline, const trace::StackTable* stacks,
                                           EventRange range, const std::set<trace::StackId>& others) {
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
    if (events.size() < kLeastRounds || others.count(stack) > 0) continue;
    if (!IsProgramLine(*stacks, stack) || !DoRoundsFree(events, frees)) continue;
    best = &events;
  }
  return best == nullptr ? std::vector<EventIndex>{} : *best;
}

// The rounds of one loop of a program without steps after another. A later one is of lines that no round before made:
// else it lies within the rounds of the first.
std::vector<EventIndex> RoundsOfLoops(const timeline::Timeline& timeline, const trace::StackTable* stacks) {
  std::vector<EventIndex> out = RoundsIn(timeline, stacks, {0, timeline.event_count()});
  constexpr int kMostLoops = 16;  // each is a look at all that follows
  std::set<trace::StackId> seen;
  std::vector<EventIndex> next = out;
  EventIndex at = 0;
  for (int loop = 1; loop < kMostLoops && !next.empty(); ++loop) {
    for (; at <= out.back(); ++at) {
      const trace::Event& event = timeline.events()[static_cast<std::size_t>(at)];
      if (event.action == trace::Action::kAlloc) seen.insert(event.stack);
    }
    next = RoundsOfOtherLines(timeline, stacks, {at, timeline.event_count()}, seen);
    out.insert(out.end(), next.begin(), next.end());
  }
  return out;
}

}  // namespace

std::vector<EventIndex> RoundsIn(const timeline::Timeline& timeline, const trace::StackTable* stacks,
                                 EventRange range) {
  return RoundsOfOtherLines(timeline, stacks, range, {});
}

Iterations::Iterations(const timeline::Timeline& timeline, const trace::StackTable* stacks,
                       absl::Span<const EventRange> steps) {
  const EventIndex end = timeline.event_count();
  if (steps.empty()) {
    begins_ = RoundsOfLoops(timeline, stacks);
    return;
  }
  begins_ = RoundsIn(timeline, stacks, {0, steps.front().begin});
  if (stacks == nullptr) {
    for (const EventRange& step : steps) begins_.push_back(step.begin);
    begins_.push_back(steps.back().end);
    return;
  }
  PassesOfStacks kinds(*stacks);
  for (const EventRange& step : steps) {
    begins_.push_back(step.begin);
    const std::vector<EventIndex> passes = PassesAfterBackward(timeline, kinds, step);
    begins_.insert(begins_.end(), passes.begin(), passes.end());
  }
  std::vector<EventIndex> after = RoundsIn(timeline, stacks, {steps.back().end, end});
  if (after.empty()) after = PassesIn(timeline, kinds, {steps.back().end, end}, steps.back());
  if (after.empty() || after.front() > steps.back().end) begins_.push_back(steps.back().end);
  begins_.insert(begins_.end(), after.begin(), after.end());
}

std::size_t Iterations::At(EventIndex event) const {
  return static_cast<std::size_t>(std::upper_bound(begins_.begin(), begins_.end(), event) - begins_.begin());
}

}  // namespace ashlar::analyses
