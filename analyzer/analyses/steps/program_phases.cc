#include "analyzer/analyses/steps/program_phases.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace ashlar::analyses {
namespace {

using timeline::EventIndex;

struct Range {
  std::string name;
  EventRange events;
};

bool NamesOptimizer(absl::string_view name) { return absl::StartsWith(name, "Optimizer."); }
bool IsOptimizerStep(absl::string_view name) { return absl::StartsWith(name, "Optimizer.step#"); }
bool IsProfilerStep(absl::string_view name) { return absl::StartsWith(name, "ProfilerStep#"); }

bool SaysStep(absl::string_view name) {
  const std::string lower = absl::AsciiStrToLower(name);
  return !NamesOptimizer(name) &&
         (absl::StrContains(lower, "step") || absl::StrContains(lower, "iter") || absl::StrContains(lower, "batch"));
}

// The name without digits, so that "step 3" and "step 4" are one.
std::string Kind(const std::string& name) {
  std::string out;
  for (const char c : name) {
    if (!absl::ascii_isdigit(static_cast<unsigned char>(c))) out += c;
  }
  return out;
}

// The first event at or after a time; times of a recording ascend.
class EventTimes {
 public:
  explicit EventTimes(const timeline::Timeline& timeline) {
    for (const trace::Event& event : timeline.events()) {
      if (event.time_us == trace::kNoTime) {
        times_.clear();
        return;
      }
      times_.push_back(times_.empty() ? event.time_us : std::max(times_.back(), event.time_us));
    }
  }
  bool IsKnown() const { return !times_.empty(); }
  EventIndex At(std::int64_t time_us) const {
    return std::lower_bound(times_.begin(), times_.end(), time_us) - times_.begin();
  }

 private:
  std::vector<std::int64_t> times_;
};

// Ranges that hold at least one event, by begin; the longer of two that begin together first.
std::vector<Range> Ranges(const timeline::Timeline& timeline, absl::Span<const trace::Annotation> annotations) {
  const EventTimes times(timeline);
  if (!times.IsKnown()) return {};
  std::vector<const trace::Annotation*> marks;
  for (const trace::Annotation& mark : annotations) {
    if (mark.device == timeline.device() && mark.time_us != trace::kNoTime) marks.push_back(&mark);
  }
  std::stable_sort(marks.begin(), marks.end(), [](const auto* a, const auto* b) { return a->time_us < b->time_us; });
  std::map<std::string, std::vector<std::int64_t>> open;
  std::vector<Range> out;
  const auto close = [&](const std::string& name, std::int64_t begin, EventIndex end) {
    const EventIndex first = times.At(begin);
    if (first < end) out.push_back({name, {first, end}});
  };
  for (const trace::Annotation* mark : marks) {
    std::vector<std::int64_t>& begins = open[mark->name];
    if (mark->stage == "START") begins.push_back(mark->time_us);
    if (mark->stage != "END" || begins.empty()) continue;
    close(mark->name, begins.back(), times.At(mark->time_us));
    begins.pop_back();
  }
  std::stable_sort(out.begin(), out.end(), [](const Range& a, const Range& b) {
    return std::pair(a.events.begin, -a.events.end) < std::pair(b.events.begin, -b.events.end);
  });
  return out;
}

bool OverlapNowhere(const std::vector<EventRange>& ranges) {
  for (std::size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].begin < ranges[i - 1].end) return false;
  }
  return true;
}

template <typename Predicate>
std::vector<EventRange> SelectRanges(const std::vector<Range>& ranges, Predicate predicate) {
  std::vector<EventRange> out;
  for (const Range& range : ranges) {
    if (predicate(range)) out.push_back(range.events);
  }
  return out;
}

// The kind of name that says step and occurs most often; of equals the first by name. Empty if there is none.
std::string StepKind(const std::vector<Range>& ranges) {
  std::map<std::string, std::size_t> kinds;
  for (const Range& range : ranges) {
    if (SaysStep(range.name)) ++kinds[Kind(range.name)];
  }
  std::string best;
  for (const auto& [kind, count] : kinds) {
    const std::string& name = kind;
    const bool is_apart =
        OverlapNowhere(SelectRanges(ranges, [&name](const Range& range) { return Kind(range.name) == name; }));
    if (count >= 2 && is_apart && (best.empty() || count > kinds[best])) best = kind;
  }
  return best;
}

// The steps between the ends of optimizer steps; of several optimizers, the one that steps most often counts, of
// equals the one that steps last.
std::vector<EventRange> BetweenOptimizerSteps(const std::vector<Range>& ranges) {
  std::map<std::string, std::vector<EventIndex>> ends;
  for (const Range& range : ranges) {
    if (IsOptimizerStep(range.name)) ends[range.name].push_back(range.events.end);
  }
  const std::vector<EventIndex>* best = nullptr;
  for (const auto& [name, of_one] : ends) {
    if (best == nullptr || std::pair(of_one.size(), of_one.back()) > std::pair(best->size(), best->back())) {
      best = &of_one;
    }
  }
  std::vector<EventRange> out;
  for (std::size_t i = 1; best != nullptr && i < best->size(); ++i) out.push_back({(*best)[i - 1], (*best)[i]});
  return out;
}

}  // namespace

AnnotatedProgram ReadAnnotations(const timeline::Timeline& timeline, absl::Span<const trace::Annotation> annotations) {
  const std::vector<Range> ranges = Ranges(timeline, annotations);
  AnnotatedProgram out;
  const std::string kind = StepKind(ranges);
  const auto is_step = [&kind](const Range& range) {
    return IsProfilerStep(range.name) || (!kind.empty() && Kind(range.name) == kind);
  };
  out.steps = SelectRanges(ranges, [](const Range& range) { return IsProfilerStep(range.name); });
  if (out.steps.empty()) out.steps = SelectRanges(ranges, is_step);
  if (out.steps.empty()) out.steps = BetweenOptimizerSteps(ranges);
  for (const Range& range : ranges) {
    if (!is_step(range)) out.phases.push_back({range.name, range.events});
  }
  return out;
}

namespace {

constexpr std::size_t kShortRun = 4;

struct StackRun {
  ProgramPart part{};
  timeline::EventIndex begin = 0;
  std::size_t allocations = 0;
};

void AppendRun(const StackRun& run, std::vector<StackRun>& runs) {
  if (!runs.empty() && runs.back().part == run.part) {
    runs.back().allocations += run.allocations;
  } else {
    runs.push_back(run);
  }
}

// Each run is absorbed by its neighbours if it is short and they are of one part.
std::vector<StackRun> WithoutShortRuns(const std::vector<StackRun>& runs) {
  std::vector<StackRun> out;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    StackRun run = runs[i];
    const bool is_between = !out.empty() && i + 1 < runs.size() && out.back().part == runs[i + 1].part;
    if (is_between && run.allocations < kShortRun) run.part = out.back().part;
    AppendRun(run, out);
  }
  return out;
}

}  // namespace

std::vector<Phase> FindStackPhases(const timeline::Timeline& timeline, const ProgramParts& parts) {
  std::vector<StackRun> runs;
  for (std::size_t i = 0; i < timeline.events().size(); ++i) {
    const trace::Event& event = timeline.events()[i];
    if (event.action != trace::Action::kAlloc) continue;
    AppendRun({parts.Of(event.stack), static_cast<timeline::EventIndex>(i), 1}, runs);
  }
  runs = WithoutShortRuns(runs);
  std::vector<Phase> out;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].part == ProgramPart::kUnknown) continue;
    const timeline::EventIndex end = i + 1 < runs.size() ? runs[i + 1].begin : timeline.event_count();
    out.push_back({std::string(ProgramPartName(runs[i].part)), {runs[i].begin, end}});
  }
  return out;
}

}  // namespace ashlar::analyses
