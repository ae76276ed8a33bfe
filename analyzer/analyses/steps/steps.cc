#include "analyzer/analyses/steps/steps.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "analyzer/analyses/steps/kept.h"
#include "analyzer/analyses/steps/program_part.h"
#include "analyzer/analyses/steps/program_phases.h"
#include "analyzer/analyses/steps/step_period.h"

namespace ashlar::analyses {
namespace {

bool Holds(const EventRange& range, timeline::EventIndex event) { return range.begin <= event && event < range.end; }

}  // namespace

Steps FindSteps(const timeline::Timeline& timeline, const trace::StackTable* stacks,
                absl::Span<const trace::Annotation> annotations) {
  const ProgramParts parts(stacks);
  Steps out;
  out.phases = FindStackPhases(timeline, parts);
  AnnotatedProgram annotated = ReadAnnotations(timeline, annotations);
  if (annotated.steps.size() >= 2) {
    out.source = StepSource::kAnnotations;
    out.steps = std::move(annotated.steps);
  } else {
    StepPeriod period = FindStepPeriod(timeline, stacks, parts, out.phases);
    if (!period.steps.empty()) {
      out.source = StepSource::kPeriod;
      out.steps = std::move(period.steps);
      out.regularity = period.regularity;
      out.told_from_sizes = period.told_from_sizes;
    }
  }
  out.phases.insert(out.phases.end(), annotated.phases.begin(), annotated.phases.end());
  std::stable_sort(out.phases.begin(), out.phases.end(),
                   [](const Phase& a, const Phase& b) { return a.events.begin < b.events.begin; });
  out.leaks = FindLeaks(timeline, stacks, out.steps);
  return out;
}

std::optional<std::size_t> StepAt(const Steps& steps, timeline::EventIndex event) {
  const auto after = std::upper_bound(steps.steps.begin(), steps.steps.end(), event,
                                      [](timeline::EventIndex at, const EventRange& step) { return at < step.begin; });
  if (after == steps.steps.begin() || !Holds(*(after - 1), event)) return std::nullopt;
  return static_cast<std::size_t>(after - steps.steps.begin()) - 1;
}

std::string PhaseOf(const Steps& steps, timeline::EventIndex event) {
  const Phase* innermost = nullptr;
  for (const Phase& phase : steps.phases) {
    if (!Holds(phase.events, event)) continue;
    const auto length = [](const Phase& of) { return of.events.end - of.events.begin; };
    if (innermost == nullptr || length(phase) < length(*innermost)) innermost = &phase;
  }
  std::string out;
  if (const std::optional<std::size_t> step = StepAt(steps, event)) {
    out = absl::StrCat("step ", *step + 1);
  } else if (!steps.steps.empty() && event < steps.steps.front().begin) {
    out = "before step 1";
  } else if (!steps.steps.empty() && event >= steps.steps.back().end) {
    out = absl::StrCat("after step ", steps.steps.size());
  }
  if (innermost != nullptr) absl::StrAppend(&out, out.empty() ? "" : ", ", innermost->name);
  return out;
}

}  // namespace ashlar::analyses
