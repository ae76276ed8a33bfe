#include "analyzer/report/plan_report.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/base/units.h"
#include "analyzer/report/json_values.h"
#include "analyzer/report/printable.h"

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

void AppendNeed(const answers::PlanAnswer& answer, const char* name, const remedies::MemoryNeed& need,
                std::string& out) {
  if (!need.smallest_device_bytes.has_value()) {
    out += absl::StrFormat("  %-17s %14s   reserved at the peak\n", name, FormatBytes(need.peak_reserved_bytes));
    return;
  }
  out += absl::StrFormat("  %-17s %14s   utilisation %.1f %%\n", name, FormatBytes(*need.smallest_device_bytes),
                         answer.Utilisation(need) * 100);
}

Json NeedJson(const answers::PlanAnswer& answer, const remedies::MemoryNeed& need) {
  Json out = {{"peak_reserved_bytes", need.peak_reserved_bytes},
              {"smallest_device_bytes", OrNull(need.smallest_device_bytes)},
              {"utilisation", nullptr}};
  if (need.smallest_device_bytes.has_value()) out["utilisation"] = answer.Utilisation(need);
  return out;
}

}  // namespace

std::string ToText(const answers::PlanAnswer& answer) {
  std::string out = absl::StrCat("PLAN  ", Shortened(Printable(answer.source), 100), "\n");
  for (const analyses::PlannedLane& lane : answer.made.lanes) {
    out += absl::StrFormat("  %-17s %14s   %s\n", "segment", FormatBytes(lane.arena_bytes), LaneRemark(lane));
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

std::string ToJson(const answers::PlanAnswer& answer) {
  Json out = {{"input", answer.input},
              {"source", answer.source},
              {"output", answer.output},
              {"steps", answer.steps},
              {"peak_allocated_bytes", answer.peak_allocated_bytes},
              {"page_floor_bytes", answer.page_floor_bytes}};
  out["without_plan"] = NeedJson(answer, answer.without);
  out["with_plan"] = NeedJson(answer, answer.with);
  out["held_out"] = nullptr;
  if (answer.held_out.has_value()) {
    out["held_out"] = {
        {"runs", answer.held_out->runs}, {"mean", answer.held_out->mean}, {"worst", answer.held_out->worst}};
  }
  out["lasting_only"] = answer.lasting_only;
  out["search_steps"] = answer.made.search_steps;
  out["lanes"] = Json::Array();
  for (const analyses::PlannedLane& lane : answer.made.lanes) {
    out["lanes"].Append({{"stream", Handle(lane.stream)},
                         {"is_private_pool", !lane.pool.IsDefault()},
                         {"size_class", lane.is_small ? "small" : "large"},
                         {"segment_bytes", lane.arena_bytes},
                         {"lower_bound", lane.lower_bound},
                         {"requests", lane.requests},
                         {"planned", lane.planned},
                         {"before_first_step", lane.prologue},
                         {"step_kinds", lane.step_kinds}});
  }
  out["notes"] = Json::Array();
  for (const trace::Note& note : answer.notes) {
    out["notes"].Append({{"name", note.name}, {"message", note.message}, {"count", note.count}});
  }
  return out.ToText();
}

}  // namespace ashlar::report
