#include "commands/plan/plan.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/base/units.h"
#include "allocator/policy/size_rule.h"
#include "analyzer/analyses/plan/make_plan.h"
#include "analyzer/analyses/steps/steps.h"
#include "analyzer/whatif/plan_choice.h"
#include "commands/shared/fields.h"
#include "commands/shared/layout.h"

namespace ashlar::answers {
namespace {

// The positions of the requests that the blocks of the timeline answer, by event. Blocks that stood there before the
// first event are asked for at the trace's beginning.
struct AnsweredRequest {
  timeline::EventIndex event = 0;
  std::int64_t position = 0;
};

std::vector<AnsweredRequest> AnsweredRequests(const TracedRun& run) {
  std::vector<std::pair<timeline::EventIndex, std::uint64_t>> blocks;
  for (const timeline::BlockSpan& block : run.timeline.blocks()) {
    if (block.alloc_event >= 0) blocks.emplace_back(block.alloc_event, block.AskedBytes());
  }
  std::sort(blocks.begin(), blocks.end());
  std::vector<std::int64_t> positions;
  for (std::size_t i = 0; i < run.requests.requests.size(); ++i) {
    if (run.requests.requests[i].kind == trace::OpKind::kAlloc) positions.push_back(static_cast<std::int64_t>(i));
  }
  if (positions.size() < blocks.size()) return {};
  const std::size_t before = positions.size() - blocks.size();
  std::vector<AnsweredRequest> out;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const std::int64_t position = positions[before + i];
    if (run.requests.requests[static_cast<std::size_t>(position)].bytes != blocks[i].second) return {};
    out.push_back({blocks[i].first, position});
  }
  return out;
}

// Where a step begins, and where the last of a row of steps ends, as positions in the requests.
std::vector<std::int64_t> StepBegins(const TracedRun& run, std::uint64_t& step_count) {
  const analyses::Steps steps = analyses::FindSteps(run.timeline, &run.stacks, run.annotations);
  const std::vector<AnsweredRequest> answered = AnsweredRequests(run);
  std::vector<std::int64_t> out;
  const auto add = [&](timeline::EventIndex event) {
    const auto at = std::lower_bound(answered.begin(), answered.end(), event,
                                     [](const AnsweredRequest& of, timeline::EventIndex e) { return of.event < e; });
    if (at != answered.end() && (out.empty() || at->position > out.back())) out.push_back(at->position);
  };
  for (const analyses::EventRange& step : steps.steps) {
    add(step.begin);
    add(step.end);
  }
  step_count = answered.empty() ? 0 : steps.steps.size();
  return out;
}

std::uint64_t BlocksBefore(const timeline::Timeline& timeline) {
  const auto& blocks = timeline.blocks();
  return static_cast<std::uint64_t>(std::count_if(blocks.begin(), blocks.end(), [](const timeline::BlockSpan& block) {
    return block.alloc_event == timeline::kBeforeWindow;
  }));
}

absl::Status NoPlanHelps(const PlanAnswer& answer) {
  if (!answer.held_out.has_value()) {
    return absl::FailedPreconditionError("without a plan it needs as little memory as with one");
  }
  return absl::FailedPreconditionError(
      absl::StrFormat("its steps differ, and steps that a plan was not made of need %.1f %% more with it than without; "
                      "--repeats plans it for runs that ask for the same, and for others there is policy:ashlar",
                      (answer.held_out->worst - 1) * 100));
}

}  // namespace

double PlanAnswer::Utilisation(const whatif::MemoryNeed& need) const {
  const std::uint64_t bytes = need.smallest_device_bytes.value_or(0);
  return bytes == 0 ? 0 : static_cast<double>(peak_allocated_bytes) / static_cast<double>(bytes);
}

absl::StatusOr<PlanAnswer> PlanOfTrace(std::string input, const TracedRun& run, const PlanSearch& search,
                                       const whatif::Progress& progress) {
  if (run.requests.requests.empty()) {
    return absl::FailedPreconditionError("it has no requests of an allocator, and a plan is made of those");
  }
  PlanAnswer out;
  out.input = std::move(input);
  out.source = run.source;
  const policy::Options plain = whatif::Following(run.options, {});
  const absl::StatusOr<std::vector<analyses::LaneRequests>> lanes = whatif::LaneRequestsOf(run.requests, plain);
  if (!lanes.ok()) return lanes.status();
  out.page_floor_bytes = analyses::PageFloor(*lanes, policy::kRoundLargeBytes);
  const std::vector<std::int64_t> begins = StepBegins(run, out.steps);
  if (progress) progress("packing, and looking for the smallest device");
  policy::Options settings = run.options;
  settings.plan = nullptr;
  const std::optional<whatif::PlanChoice> choice =
      whatif::ChoosePlan({run.requests, settings, *lanes, begins, search.max_steps, search.repeats});
  if (!choice.has_value()) return absl::FailedPreconditionError("its requests cannot be replayed");
  static_cast<whatif::PlanChoice&>(out) = *choice;
  if (out.made.lanes.empty()) return NoPlanHelps(out);
  out.made.plan.made_of = out.source;
  out.notes = NotesOfSettings(run.options);
  if (out.lasting_only) {
    out.notes.push_back({"lasting_only", "its steps differ: only what outlives its step has a place in the plan", 1});
  }
  if (!out.with.smallest_device_bytes.has_value()) {
    out.notes.push_back({"device_not_searched", "the trace is long: the smallest device was not looked for", 1});
  }
  if (const std::uint64_t before = BlocksBefore(run.timeline); before > 0) {
    out.notes.push_back(
        {"starts_warm",
         "blocks that were there before the trace begins: what came before is not in the plan, so record "
         "the run from its start (dry-run --history N)",
         before});
  }
  if (begins.empty()) {
    out.notes.push_back({"no_steps", "no steps were found: the plan is of the whole run, once", 1});
  }
  return out;
}

}  // namespace ashlar::answers

namespace ashlar::report {
namespace {

std::string LaneRemark(const analyses::PlannedLane& lane) {
  std::string out = absl::StrCat("stream ", Handle(lane.stream), lane.pool.IsDefault() ? "" : " in a private pool",
                                 ": ", FormatCount(lane.planned), " of ", FormatCount(lane.requests),
                                 lane.is_small ? " small requests, " : " large requests, ");
  if (lane.step_kinds == 0) return absl::StrCat(out, "once");
  return absl::StrCat(out, FormatCount(lane.prologue), " before the first step, then ", FormatCount(lane.step_kinds),
                      lane.step_kinds == 1 ? " kind of step" : " kinds of steps");
}

void AppendNeed(const answers::PlanAnswer& answer, const char* name, const whatif::MemoryNeed& need, std::string& out) {
  if (!need.smallest_device_bytes.has_value()) {
    out += absl::StrFormat("  %-17s %14s   reserved at the peak\n", name, FormatBytes(need.peak_reserved_bytes));
    return;
  }
  out += absl::StrFormat("  %-17s %14s   utilisation %.1f %%\n", name, FormatBytes(*need.smallest_device_bytes),
                         answer.Utilisation(need) * 100);
}

}  // namespace

std::string ToText(const answers::PlanAnswer& answer) {
  std::string out = absl::StrCat("PLAN  ", Shortened(Printable(answer.source), 100), "\n");
  for (const analyses::PlannedLane& lane : answer.made.lanes) {
    out += absl::StrFormat("  %-17s %14s   %s\n", "segment", FormatBytes(lane.segment_bytes), LaneRemark(lane));
  }
  out += absl::StrFormat("  %-17s %14s\n", "peak allocated", FormatBytes(answer.peak_allocated_bytes));
  out += absl::StrFormat("  %-17s %14s   each stream's and pool's small and large blocks in whole pages of 2 MiB\n",
                         "in pages", FormatBytes(answer.page_floor_bytes));
  out += "\nTHE SMALLEST DEVICE   (that serves every request, replayed from an empty allocator)\n";
  AppendNeed(answer, "without the plan", answer.without, out);
  AppendNeed(answer, "with the plan", answer.with, out);
  if (answer.held_out.has_value()) {
    out += absl::StrFormat(
        "  %-17s %12.1f %%   of what they need without it: %u runs of steps that the plan was not made of; %.1f %% at "
        "most\n",
        "held out", answer.held_out->mean * 100, answer.held_out->runs, answer.held_out->worst * 100);
  }
  absl::StrAppend(&out, "\nUSE  export ASHLAR_CONF=plan:", Printable(answer.output), "\n");
  for (const trace::Note& note : answer.notes) {
    absl::StrAppend(&out, "note: ", Printable(note.message), "\n");
  }
  return out;
}

namespace {

// A need as the answer shows it.
struct ShownNeed {
  const answers::PlanAnswer& answer;
  const whatif::MemoryNeed& need;
};

}  // namespace

template <>
const Fields<ShownNeed>& FieldsOf<ShownNeed>() {
  static const auto* fields = new Fields<ShownNeed>(
      Fields<ShownNeed>("need")
          .Add(
              "peak_reserved_bytes", [](const auto& of) { return of.need.peak_reserved_bytes; },
              "In memory that does not run out.")
          .Add(
              "smallest_device_bytes", [](const auto& of) { return of.need.smallest_device_bytes; },
              "That serves every request.")
          .Add(
              "utilisation",
              [](const auto& of) {
                const bool is_known = of.need.smallest_device_bytes.has_value();
                return is_known ? std::optional(of.answer.Utilisation(of.need)) : std::nullopt;
              },
              "peak_allocated_bytes / smallest_device_bytes."));
  return *fields;
}

template <>
const Fields<whatif::HeldOutSteps>& FieldsOf<whatif::HeldOutSteps>() {
  static const auto* fields = new Fields<whatif::HeldOutSteps>(
      Fields<whatif::HeldOutSteps>("held_out")
          .Add("runs", &whatif::HeldOutSteps::runs, "Of steps that a plan was not made of.")
          .Add("mean", &whatif::HeldOutSteps::mean,
               "Their smallest device with the plan, as a part of the one without.")
          .Add("worst", &whatif::HeldOutSteps::worst));
  return *fields;
}

template <>
const Fields<analyses::PlannedLane>& FieldsOf<analyses::PlannedLane>() {
  static const auto* fields = new Fields<analyses::PlannedLane>(
      Fields<analyses::PlannedLane>("lane")
          .Add(
              "stream", [](const auto& of) { return Handle(of.stream); }, "Its handle in the trace.")
          .Add(
              "is_private_pool", [](const auto& of) { return !of.pool.IsDefault(); },
              "Of a captured graph, or a MemPool.")
          .AddWord(
              "size_class", [](const auto& of) { return of.is_small ? "small" : "large"; }, {"small", "large"},
              "Blocks of at most 1 MiB, or of more.")
          .Add("segment_bytes", &analyses::PlannedLane::segment_bytes, "Of the one segment that its blocks lie in.")
          .Add("lower_bound", &analyses::PlannedLane::lower_bound, "The most that lies in it at one time.")
          .Add("requests", &analyses::PlannedLane::requests, "That it makes.")
          .Add("planned", &analyses::PlannedLane::planned, "Of those, the ones that the plan places.")
          .Add("before_first_step", &analyses::PlannedLane::prologue, "Of those, before the first step.")
          .Add("step_kinds", &analyses::PlannedLane::step_kinds,
               "Steps that differ; 0: the run is planned as a whole, once."));
  return *fields;
}

template <>
const Fields<answers::PlanAnswer>& FieldsOf<answers::PlanAnswer>() {
  using Answer = answers::PlanAnswer;
  static const auto* fields = new Fields<Answer>(
      Fields<Answer>("plan")
          .Add("input", &Answer::input, "The name as given.")
          .Add("source", &Answer::source, "What was read.")
          .Add("output", &Answer::output, "The plan's file.")
          .Add("steps", &Answer::steps, "Steps found in the run.")
          .Add("peak_allocated_bytes", &Answer::peak_allocated_bytes, "The most that was in use at one time.")
          .Add("page_floor_bytes", &Answer::page_floor_bytes,
               "The most that its streams and pools hold at one time in whole pages of 2 MiB, small blocks apart from "
               "large ones.")
          .Add(
              "without_plan", [](const auto& of) { return ShownNeed{of, of.without}; },
              "Under the settings of the trace.")
          .Add(
              "with_plan", [](const auto& of) { return ShownNeed{of, of.with}; }, "Under the plan beside them.")
          .Add("held_out", &Answer::held_out, "Null: the run has too few steps, or --repeats was given.")
          .Add("lasting_only", &Answer::lasting_only, "Only what outlives its step has a place in the plan.")
          .Add(
              "search_steps", [](const auto& of) { return of.made.search_steps; },
              "Steps that the search for a packing took.")
          .Add(
              "lanes", [](const auto& of) { return of.made.lanes; },
              "By the first request of each. Small blocks are there where planning them makes the device smaller.")
          .Add("notes", &Answer::notes, "What was not found or not looked for."));
  return *fields;
}

std::string ToJson(const answers::PlanAnswer& answer) {
  return FieldsOf<answers::PlanAnswer>().ToJson(answer).ToText();
}

std::string PlanSchema() {
  return SchemaTextOf<answers::PlanAnswer>("plan",
                                           "Where the blocks of a run go, and how small a device then serves it. Null "
                                           "means that it was not looked for.");
}

}  // namespace ashlar::report
