#include "analyzer/answers/diff.h"

#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "analyzer/analyses/steps/steps.h"

namespace ashlar::answers {
namespace {

absl::StatusOr<timeline::EventIndex> MomentOf(const TracedRun& run, DiffMoment moment) {
  switch (moment) {
    case DiffMoment::kPeak:
      return run.timeline.event_count() == 0 ? timeline::kBeforeWindow : run.timeline.allocated_peak().event;
    case DiffMoment::kOom:
      if (run.timeline.oom_events().empty()) {
        return absl::OutOfRangeError("--at oom: no request failed in this recording; compare at peak or end");
      }
      return run.timeline.oom_events().back();
    case DiffMoment::kEnd:
      return run.timeline.last_event();
  }
  return absl::InternalError("no such moment");
}

std::string Describe(const TracedRun& run, DiffMoment moment, timeline::EventIndex event) {
  if (run.timeline.event_count() == 0) return "the end of the recording (no events in this file)";
  if (moment == DiffMoment::kOom) return absl::StrCat("the last out-of-memory error, event ", FormatCount(event));
  const std::string what = moment == DiffMoment::kEnd ? "the end of the recording" : "the peak of allocated memory";
  if (event == timeline::kBeforeWindow) return absl::StrCat(what, ", at the start of the recorded window");
  return absl::StrCat(what, ", event ", FormatCount(static_cast<std::uint64_t>(event)));
}

// Only named phases: the number of a step says nothing about the other recording.
std::function<std::string(timeline::EventIndex)> PhasesOf(const analyses::Steps& steps) {
  if (steps.phases.empty()) return {};
  return [&steps](timeline::EventIndex event) -> std::string {
    const std::string place = analyses::PhaseOf(steps, event);  // "step 12, backward"
    if (!analyses::StepAt(steps, event).has_value()) return steps.steps.empty() ? place : "outside of whole steps";
    const std::size_t comma = place.find(", ");
    return comma == std::string::npos ? "" : place.substr(comma + 2);
  };
}

void NoteSide(const DiffInput& side, const TracedRun& run, std::vector<trace::Note>& notes) {
  if (run.stacks.stack_count() == 0) {
    notes.push_back({"no_stacks", absl::StrCat(side.name, ": call stacks are not in this trace"), 1});
  }
  if (!run.has_events) {
    notes.push_back({"no_events", absl::StrCat(side.name, ": the file has one state, not how it came about"), 1});
  }
  for (trace::Note& note : NotesOfSettings(run.options)) {
    notes.push_back({note.name, absl::StrCat(side.name, ": ", note.message), note.count});
  }
}

}  // namespace

absl::StatusOr<DiffAnswer> MakeDiff(const std::string& a_name, const TracedRun& a, const std::string& b_name,
                                    const TracedRun& b, DiffMoment moment) {
  const auto located = [](const absl::Status& status, const std::string& name) {
    return absl::Status(status.code(), absl::StrCat(name, ": ", status.message()));
  };
  const absl::StatusOr<timeline::EventIndex> a_event = MomentOf(a, moment);
  if (!a_event.ok()) return located(a_event.status(), a_name);
  const absl::StatusOr<timeline::EventIndex> b_event = MomentOf(b, moment);
  if (!b_event.ok()) return located(b_event.status(), b_name);
  DiffAnswer out;
  out.a = {a_name, a.source, Describe(a, moment, *a_event)};
  out.b = {b_name, b.source, Describe(b, moment, *b_event)};
  const analyses::Steps a_steps = analyses::FindSteps(a.timeline, &a.stacks, a.annotations);
  const analyses::Steps b_steps = analyses::FindSteps(b.timeline, &b.stacks, b.annotations);
  out.diff = analyses::DiffStates({&a.timeline, *a_event, &a.stacks, PhasesOf(a_steps)},
                                  {&b.timeline, *b_event, &b.stacks, PhasesOf(b_steps)});
  out.has_phases = !a_steps.phases.empty() || !b_steps.phases.empty();
  out.has_stacks = a.stacks.stack_count() + b.stacks.stack_count() > 0;
  NoteSide(out.a, a, out.notes);
  NoteSide(out.b, b, out.notes);
  return out;
}

}  // namespace ashlar::answers
