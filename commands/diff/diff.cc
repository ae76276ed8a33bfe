#include "commands/diff/diff.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/base/units.h"
#include "analyzer/analyses/steps/steps.h"
#include "commands/shared/fields.h"
#include "commands/shared/json_values.h"
#include "commands/shared/layout.h"

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

namespace ashlar::report {
namespace {

using analyses::DiffParts;
using analyses::DiffRow;

constexpr std::size_t kMostRows = 7;  // of each view
constexpr std::size_t kPartWidth = 70;
constexpr std::size_t kInputWidth = 120;

std::string Grown(std::uint64_t a, std::uint64_t b) {
  if (a == b) return "0 B";
  return b > a ? absl::StrCat("+", FormatBytes(b - a)) : absl::StrCat("-", FormatBytes(a - b));
}

void AppendPartPair(const char* name, std::uint64_t a, std::uint64_t b, std::string& out) {
  out += absl::StrFormat("  %-20s %12s %12s %13s\n", name, FormatBytes(a), FormatBytes(b), Grown(a, b));
}

void AppendBothAccountings(const DiffParts& whole_a, const DiffParts& whole_b, std::string& out) {
  const core::Accounting& a = whole_a.bytes;
  const core::Accounting& b = whole_b.bytes;
  out += absl::StrFormat("\n%-22s %12s %12s %13s\n", "WHERE THE MEMORY IS", "A", "B", "B - A");
  if (a.live_bytes.has_value() && b.live_bytes.has_value()) {
    AppendPartPair("live tensors", *a.live_bytes, *b.live_bytes, out);
    AppendPartPair("rounding", *a.rounding_bytes, *b.rounding_bytes, out);
  } else {
    AppendPartPair("live blocks", a.allocated_bytes, b.allocated_bytes, out);
  }
  AppendPartPair("pending frees", a.pending_bytes, b.pending_bytes, out);
  AppendPartPair("stranded", a.stranded_bytes, b.stranded_bytes, out);
  AppendPartPair("whole-free segments", a.whole_free_bytes, b.whole_free_bytes, out);
  AppendPartPair("private pools' holes", a.private_pool_bytes, b.private_pool_bytes, out);
  AppendPartPair("= reserved", a.reserved_bytes, b.reserved_bytes, out);
}

std::string Presence(const DiffRow& row) {
  if (row.a.IsEmpty()) return "only in B";
  if (row.b.IsEmpty()) return "only in A";
  return absl::StrCat(FormatBytes(row.a.bytes.reserved_bytes), " -> ", FormatBytes(row.b.bytes.reserved_bytes));
}

std::string Rows(std::size_t count) { return absl::StrCat(FormatCount(count), count == 1 ? " row" : " rows"); }

// Rows without a difference are not shown but counted.
void AppendView(const char* title, const std::vector<DiffRow>& rows, std::string& out) {
  const std::size_t changed = static_cast<std::size_t>(
      std::count_if(rows.begin(), rows.end(), [](const DiffRow& row) { return row.GrownBytes() != 0; }));
  absl::StrAppend(&out, "\n", title, "\n");
  const std::size_t shown = std::min(changed, kMostRows);
  for (std::size_t i = 0; i < shown; ++i) {
    out += absl::StrFormat("  %13s  %-26s %s\n", Grown(rows[i].a.bytes.reserved_bytes, rows[i].b.bytes.reserved_bytes),
                           Presence(rows[i]), Shortened(Printable(rows[i].label), kPartWidth));
  }
  std::uint64_t rest_a = 0, rest_b = 0;
  for (std::size_t i = shown; i < rows.size(); ++i) {
    rest_a += rows[i].a.bytes.reserved_bytes;
    rest_b += rows[i].b.bytes.reserved_bytes;
  }
  if (shown < changed) {
    out += absl::StrFormat("  %13s  in %s more (--json has them)\n", Grown(rest_a, rest_b), Rows(changed - shown));
  }
  if (changed < rows.size()) {
    out += absl::StrFormat("  %13s  in %s of equal size\n", "0 B", Rows(rows.size() - changed));
  }
}

void AppendInput(const char* letter, const answers::DiffInput& input, std::string& out) {
  absl::StrAppend(&out, "  ", letter, "  ", Shortened(Printable(input.name), kInputWidth), "\n     ",
                  Shortened(Printable(absl::StrCat(input.source, "; at ", input.moment)), kInputWidth), "\n");
}

}  // namespace

std::string ToText(const answers::DiffAnswer& report) {
  const core::Accounting& a = report.diff.a.bytes;
  const core::Accounting& b = report.diff.b.bytes;
  std::string out = absl::StrCat("DIFF  reserved ", Grown(a.reserved_bytes, b.reserved_bytes), ", allocated ",
                                 Grown(a.allocated_bytes, b.allocated_bytes), "\n");
  AppendInput("A", report.a, out);
  AppendInput("B", report.b, out);
  AppendBothAccountings(report.diff.a, report.diff.b, out);
  const std::string in_use = Grown(a.allocated_bytes + a.pending_bytes, b.allocated_bytes + b.pending_bytes);
  if (report.has_stacks) {
    AppendView(absl::StrCat("BY STACK   (blocks in use; sums to ", in_use, ")").c_str(), report.diff.by_stack, out);
  }
  if (report.has_phases) {
    AppendView(absl::StrCat("BY PHASE   (of the allocation; sums to ", in_use, ")").c_str(), report.diff.by_phase, out);
  }
  AppendView(absl::StrCat("BY SIZE   (blocks in use; sums to ", in_use, ")").c_str(), report.diff.by_size, out);
  AppendView(absl::StrCat("BY SEGMENT   (sums to ", Grown(a.reserved_bytes, b.reserved_bytes), " reserved)").c_str(),
             report.diff.by_segment, out);
  for (const trace::Note& note : report.notes) {
    absl::StrAppend(&out, "note: ", Shortened(Printable(note.message), kInputWidth), "\n");
  }
  return out;
}

namespace {

using Value = std::optional<std::uint64_t> (*)(const DiffParts&);
struct ComparedFigure {
  const char* key;
  Value value;
};

constexpr ComparedFigure kBlockFigures[] = {
    {"in_use_bytes", [](const DiffParts& p) { return std::optional(p.bytes.allocated_bytes + p.bytes.pending_bytes); }},
    {"allocated_bytes", [](const DiffParts& p) { return std::optional(p.bytes.allocated_bytes); }},
    {"live_bytes", [](const DiffParts& p) { return p.bytes.live_bytes; }},
    {"rounding_bytes", [](const DiffParts& p) { return p.bytes.rounding_bytes; }},
    {"pending_bytes", [](const DiffParts& p) { return std::optional(p.bytes.pending_bytes); }},
    {"blocks", [](const DiffParts& p) { return std::optional(p.blocks); }},
};

constexpr ComparedFigure kSegmentFigures[] = {
    {"reserved_bytes", [](const DiffParts& p) { return std::optional(p.bytes.reserved_bytes); }},
    {"stranded_bytes", [](const DiffParts& p) { return std::optional(p.bytes.stranded_bytes); }},
    {"whole_free_bytes", [](const DiffParts& p) { return std::optional(p.bytes.whole_free_bytes); }},
    {"private_pool_bytes", [](const DiffParts& p) { return std::optional(p.bytes.private_pool_bytes); }},
    {"segments", [](const DiffParts& p) { return std::optional(p.segments); }},
};

// `a` absent: the figures of b; else b - a, null where a side does not know.
Json FigureJson(const ComparedFigure& figure, const DiffParts* a, const DiffParts& b) {
  const std::optional<std::uint64_t> to = figure.value(b);
  if (!to.has_value()) return nullptr;
  if (a == nullptr) return *to;
  const std::optional<std::uint64_t> from = figure.value(*a);
  return from.has_value() ? Json(static_cast<std::int64_t>(*to - *from)) : Json(nullptr);
}

Json DiffPartsJson(const DiffParts* a, const DiffParts& b, bool has_segments) {
  Json out = Json::Object();
  if (has_segments) {
    for (const ComparedFigure& figure : kSegmentFigures) out[figure.key] = FigureJson(figure, a, b);
  }
  for (const ComparedFigure& figure : kBlockFigures) out[figure.key] = FigureJson(figure, a, b);
  return out;
}

Json RowsJson(const std::vector<DiffRow>& rows, bool has_segments) {
  Json out = Json::Array();
  for (const DiffRow& row : rows) {
    out.Append({{"label", row.label},
                {"found_in", row.a.IsEmpty()   ? "b"
                             : row.b.IsEmpty() ? "a"
                                               : "both"},
                {"a", DiffPartsJson(nullptr, row.a, has_segments)},
                {"b", DiffPartsJson(nullptr, row.b, has_segments)},
                {"difference", DiffPartsJson(&row.a, row.b, has_segments)}});
  }
  return out;
}

Json SideJson(const answers::DiffInput& input, const DiffParts& parts) {
  return {{"input", input.name},
          {"source", input.source},
          {"moment", input.moment},
          {"parts", DiffPartsJson(nullptr, parts, /*has_segments=*/true)}};
}

}  // namespace

std::string ToJson(const answers::DiffAnswer& report) {
  Json out = {{"a", SideJson(report.a, report.diff.a)},
              {"b", SideJson(report.b, report.diff.b)},
              {"difference", DiffPartsJson(&report.diff.a, report.diff.b, /*has_segments=*/true)},
              {"by_stack", report.has_stacks ? RowsJson(report.diff.by_stack, false) : Json(nullptr)},
              {"by_phase", report.has_phases ? RowsJson(report.diff.by_phase, false) : Json(nullptr)},
              {"by_size", RowsJson(report.diff.by_size, false)},
              {"by_segment", RowsJson(report.diff.by_segment, true)}};
  out["notes"] = JsonOf(report.notes);
  return out.ToText();
}

}  // namespace ashlar::report
