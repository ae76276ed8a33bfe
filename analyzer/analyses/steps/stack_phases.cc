#include "analyzer/analyses/steps/stack_phases.h"

#include <cstddef>
#include <string>

namespace ashlar::analyses {
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
