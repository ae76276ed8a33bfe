#include "commands/diff/diff.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "allocator/base/units.h"
#include "analyzer/analyses/steps/steps.h"
#include "commands/shared/fields.h"
#include "commands/shared/held_text.h"
#include "commands/shared/layout.h"
#include "commands/shared/markdown.h"

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
  if (run.timeline.event_count() == 0) return kMomentOfState;
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
    notes.push_back({"no_events", absl::StrCat(side.name, ": ", kOneState), 1});
  }
  for (const trace::Note& note : NotesOfSettings(run.options)) {
    notes.push_back({note.name, absl::StrCat(side.name, ": ", note.message), note.count});
  }
}

std::optional<analyses::HeldByName> HeldThen(const TracedRun& run, timeline::EventIndex event) {
  if (!run.held.has_value()) return std::nullopt;
  return analyses::HeldAt(*run.held, run.timeline, event);
}

void CompareNames(DiffAnswer& out) {
  if (out.a.held.has_value() && out.b.held.has_value()) {
    out.by_name = analyses::DiffNames(*out.a.held, *out.b.held);
  } else if (out.a.held.has_value() || out.b.held.has_value()) {
    const DiffInput& without = out.a.held.has_value() ? out.b : out.a;
    out.notes.push_back({"no_names",
                         absl::StrCat(without.name,
                                      ": who holds the memory is not in this file; "
                                      "dry-run, record and ashlar_gpu.on_oom write it"),
                         1});
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
  out.a = {a_name, a.source, Describe(a, moment, *a_event), HeldThen(a, *a_event)};
  out.b = {b_name, b.source, Describe(b, moment, *b_event), HeldThen(b, *b_event)};
  const analyses::Steps a_steps = analyses::FindSteps(a.timeline, &a.stacks, a.annotations);
  const analyses::Steps b_steps = analyses::FindSteps(b.timeline, &b.stacks, b.annotations);
  out.diff = analyses::DiffStates({&a.timeline, *a_event, &a.stacks, PhasesOf(a_steps)},
                                  {&b.timeline, *b_event, &b.stacks, PhasesOf(b_steps)});
  out.has_phases = !a_steps.phases.empty() || !b_steps.phases.empty();
  out.has_stacks = a.stacks.stack_count() + b.stacks.stack_count() > 0;
  NoteSide(out.a, a, out.notes);
  NoteSide(out.b, b, out.notes);
  CompareNames(out);
  return out;
}

}  // namespace ashlar::answers

namespace ashlar::report {
namespace {

using analyses::DiffParts;
using analyses::DiffRow;
using analyses::NameDiffRow;

// Calls `add(key, description, value)` for each figure of a part of the memory, as the answer shows it.
template <typename Add>
void ForEachFigure(bool has_segments, const Add& add) {
  if (has_segments) {
    add("reserved_bytes", "all segments.", [](const DiffParts& p) { return p.bytes.reserved_bytes; });
    add("stranded_bytes", "free bytes in segments that still hold a block in use.",
        [](const DiffParts& p) { return p.bytes.stranded_bytes; });
    add("whole_free_bytes", "segments without a block in use.",
        [](const DiffParts& p) { return p.bytes.whole_free_bytes; });
    add("private_pool_bytes", "free bytes in private pools.",
        [](const DiffParts& p) { return p.bytes.private_pool_bytes; });
    add("segments", "number of segments.", [](const DiffParts& p) { return p.segments; });
  }
  add("in_use_bytes", "what the blocks in use span: allocated + pending.",
      [](const DiffParts& p) { return p.bytes.allocated_bytes + p.bytes.pending_bytes; });
  add("allocated_bytes", "blocks handed out and not freed: live + rounding.",
      [](const DiffParts& p) { return p.bytes.allocated_bytes; });
  add("live_bytes", "what the callers of those blocks asked for.",
      [](const DiffParts& p) { return p.bytes.live_bytes; });
  add("rounding_bytes", "what their blocks span beyond that.",
      [](const DiffParts& p) { return p.bytes.rounding_bytes; });
  add("pending_bytes", "freed, still waiting for work on another stream.",
      [](const DiffParts& p) { return p.bytes.pending_bytes; });
  add("blocks", "number of blocks in use.", [](const DiffParts& p) { return p.blocks; });
}

std::int64_t Minus(std::uint64_t b, std::uint64_t a) { return static_cast<std::int64_t>(b - a); }
std::optional<std::int64_t> Minus(std::optional<std::uint64_t> b, std::optional<std::uint64_t> a) {
  return a.has_value() && b.has_value() ? std::optional(Minus(*b, *a)) : std::nullopt;
}

// Parts of the memory as the answer shows them: with the segments that they lie in, or as blocks alone.
template <bool kHasSegments>
struct ShownParts {
  const DiffParts* parts;
};
template <bool kHasSegments>
struct ShownGrowth {
  const DiffParts* a;
  const DiffParts* b;
};
template <bool kHasSegments>
struct ShownRow {
  const DiffRow* row;
};
template <bool kHasSegments>
Fields<ShownParts<kHasSegments>> PartsFields(const char* name) {
  Fields<ShownParts<kHasSegments>> out(name);
  ForEachFigure(kHasSegments, [&out](const char* key, absl::string_view description, auto value) {
    std::string sentence(description);
    sentence.front() = absl::ascii_toupper(static_cast<unsigned char>(sentence.front()));
    out.Add(key, [](const auto& of) { return decltype(value){}(*of.parts); }, sentence);
  });
  return out;
}

template <bool kHasSegments>
Fields<ShownGrowth<kHasSegments>> GrowthFields(const char* name) {
  Fields<ShownGrowth<kHasSegments>> out(name);
  ForEachFigure(kHasSegments, [&out](const char* key, absl::string_view description, auto value) {
    out.Add(
        key, [](const auto& of) { return Minus(decltype(value){}(*of.b), decltype(value){}(*of.a)); },
        absl::StrCat("Of b minus that of a: ", description));
  });
  return out;
}

absl::string_view FoundIn(bool is_in_a, bool is_in_b) { return !is_in_a ? "b" : !is_in_b ? "a" : "both"; }

template <bool kHasSegments>
Fields<ShownRow<kHasSegments>> RowFields(const char* name) {
  return Fields<ShownRow<kHasSegments>>(name)
      .Add(
          "label", [](const auto& of) { return of.row->label; }, "By which the two sides are matched.")
      .AddWord(
          "found_in", [](const auto& of) { return FoundIn(!of.row->a.IsEmpty(), !of.row->b.IsEmpty()); },
          {"both", "a", "b"}, "Which side has the row.")
      .Add(
          "a", [](const auto& of) { return ShownParts<kHasSegments>{&of.row->a}; },
          "What a has of it; zeros where it has none.")
      .Add(
          "b", [](const auto& of) { return ShownParts<kHasSegments>{&of.row->b}; },
          "What b has of it; zeros where it has none.")
      .Add(
          "difference", [](const auto& of) { return ShownGrowth<kHasSegments>{&of.row->a, &of.row->b}; }, "b minus a.");
}

template <bool kHasSegments>
std::vector<ShownRow<kHasSegments>> ShownRows(const std::vector<DiffRow>& rows) {
  std::vector<ShownRow<kHasSegments>> out;
  for (const DiffRow& row : rows) out.push_back({&row});
  return out;
}

struct ShownSide {
  const answers::DiffInput* input;
  const DiffParts* parts;
};

struct ShownNames {
  const analyses::HeldByName* held;
};

struct NamedGrowth {
  const NameDiffRow* row;
};

}  // namespace

template <>
const Fields<ShownParts<true>>& FieldsOf<ShownParts<true>>() {
  static const auto* fields = new Fields<ShownParts<true>>(PartsFields<true>("segment_parts"));
  return *fields;
}
template <>
const Fields<ShownParts<false>>& FieldsOf<ShownParts<false>>() {
  static const auto* fields = new Fields<ShownParts<false>>(PartsFields<false>("block_parts"));
  return *fields;
}
template <>
const Fields<ShownGrowth<true>>& FieldsOf<ShownGrowth<true>>() {
  static const auto* fields = new Fields<ShownGrowth<true>>(GrowthFields<true>("segment_difference"));
  return *fields;
}
template <>
const Fields<ShownGrowth<false>>& FieldsOf<ShownGrowth<false>>() {
  static const auto* fields = new Fields<ShownGrowth<false>>(GrowthFields<false>("block_difference"));
  return *fields;
}
template <>
const Fields<ShownRow<true>>& FieldsOf<ShownRow<true>>() {
  static const auto* fields = new Fields<ShownRow<true>>(RowFields<true>("segment_row"));
  return *fields;
}
template <>
const Fields<ShownRow<false>>& FieldsOf<ShownRow<false>>() {
  static const auto* fields = new Fields<ShownRow<false>>(RowFields<false>("block_row"));
  return *fields;
}

template <>
const Fields<analyses::NamedParts>& FieldsOf<analyses::NamedParts>() {
  static const auto* fields = new Fields<analyses::NamedParts>(
      Fields<analyses::NamedParts>("named_parts")
          .Add(
              "bytes", [](const auto& of) { return of.bytes; }, "What the callers of those blocks asked for.")
          .Add("blocks", [](const auto& of) { return of.blocks; }, "Number of live blocks."));
  return *fields;
}

template <>
const Fields<NamedGrowth>& FieldsOf<NamedGrowth>() {
  static const auto* fields = new Fields<NamedGrowth>(
      Fields<NamedGrowth>("named_difference")
          .Add(
              "bytes", [](const auto& of) { return of.row->GrownBytes(); }, "Of b minus those of a.")
          .Add(
              "blocks", [](const auto& of) { return Minus(of.row->b.blocks, of.row->a.blocks); },
              "Of b minus those of a."));
  return *fields;
}

template <>
const Fields<NameDiffRow>& FieldsOf<NameDiffRow>() {
  static const auto* fields = new Fields<NameDiffRow>(
      Fields<NameDiffRow>("name_row")
          .Add(
              "kind", [](const auto& of) { return of.holder.kind; },
              "What holds it, as names.schema.json has it; not_found: nothing that was found.")
          .Add(
              "name", [](const auto& of) { return of.holder.name; }, "In the program: losses[], model.layers.*.weight.")
          .AddNonEmpty(
              "file", [](const auto& of) -> const auto& { return of.holder.file; }, "Of the variable's scope.")
          .Add(
              "line", [](const auto& of) { return of.holder.line > 0 ? std::optional(of.holder.line) : std::nullopt; },
              "Of the variable's scope, in b where b has the name; null also where that side has several.")
          .AddNonEmpty(
              "function", [](const auto& of) -> const auto& { return of.holder.function; }, "Of the variable's scope.")
          .AddWord(
              "found_in", [](const auto& of) { return FoundIn(of.a.blocks > 0, of.b.blocks > 0); }, {"both", "a", "b"},
              "Which side has the name.")
          .Add(
              "a", [](const auto& of) { return of.a; }, "What it holds in a; zeros where a does not have it.")
          .Add(
              "b", [](const auto& of) { return of.b; }, "What it holds in b; zeros where b does not have it.")
          .Add("difference", [](const auto& of) { return NamedGrowth{&of}; }, "b minus a."));
  return *fields;
}

template <>
const Fields<ShownNames>& FieldsOf<ShownNames>() {
  static const auto* fields =
      new Fields<ShownNames>(Fields<ShownNames>("names")
                                 .Add(
                                     "when", [](const auto& of) { return of.held->when; }, "When they were taken.")
                                 .Add(
                                     "live_bytes", [](const auto& of) { return of.held->live_bytes; },
                                     "Of live blocks at the moment compared.")
                                 .Add(
                                     "named_bytes", [](const auto& of) { return of.held->named_bytes; },
                                     "Of those, what has a name. What was freed before the names were taken has none.")
                                 .AddNonEmpty(
                                     "bound", [](const auto& of) -> const auto& { return of.held->bound; },
                                     "What ended the look early, time or objects: some names are missing then."));
  return *fields;
}

template <>
const Fields<ShownSide>& FieldsOf<ShownSide>() {
  static const auto* fields = new Fields<ShownSide>(
      Fields<ShownSide>("side")
          .Add(
              "input", [](const auto& of) { return of.input->name; }, "The name as given.")
          .Add(
              "source", [](const auto& of) { return of.input->source; }, "What was read.")
          .Add(
              "moment", [](const auto& of) { return of.input->moment; }, "When its state was taken.")
          .Add(
              "names",
              [](const auto& of) {
                return of.input->held.has_value() ? std::optional(ShownNames{&*of.input->held}) : std::nullopt;
              },
              "Of the names in the file; null where it has none.")
          .Add("parts", [](const auto& of) { return ShownParts<true>{of.parts}; }, "All of it."));
  return *fields;
}

template <>
const Fields<answers::DiffAnswer>& FieldsOf<answers::DiffAnswer>() {
  using Answer = answers::DiffAnswer;
  static const auto* fields = new Fields<Answer>(
      Fields<Answer>("diff")
          .Add(
              "a", [](const auto& of) { return ShownSide{&of.a, &of.diff.a}; }, "The first input.")
          .Add(
              "b", [](const auto& of) { return ShownSide{&of.b, &of.diff.b}; }, "The second input.")
          .Add(
              "difference", [](const auto& of) { return ShownGrowth<true>{&of.diff.a, &of.diff.b}; }, "b minus a.")
          .Add(
              "by_name", [](const auto& of) { return of.by_name; },
              "Live blocks by who holds them; null where a side has no names.")
          .Add(
              "by_stack",
              [](const auto& of) {
                return of.has_stacks ? std::optional(ShownRows<false>(of.diff.by_stack)) : std::nullopt;
              },
              "Blocks in use by the line that allocated them; null where neither side has stacks.")
          .Add(
              "by_phase",
              [](const auto& of) {
                return of.has_phases ? std::optional(ShownRows<false>(of.diff.by_phase)) : std::nullopt;
              },
              "Blocks in use by the program's phase when they were allocated; null where none is known.")
          .Add(
              "by_size", [](const auto& of) { return ShownRows<false>(of.diff.by_size); },
              "Blocks in use by pool and power of two of their size.")
          .Add(
              "by_segment", [](const auto& of) { return ShownRows<true>(of.diff.by_segment); },
              "Segments by pool, kind and power of two of their size.")
          .Add("notes", [](const auto& of) { return of.notes; }, "What was guessed or is not known."));
  return *fields;
}

std::string ToJson(const answers::DiffAnswer& report) { return JsonOf(report).ToText(); }

std::string DiffSchema() {
  return SchemaTextOf<answers::DiffAnswer>(
      "diff",
      "What differs between two recordings. Each figure of the rows of a view sums to that of `difference`. Sizes are "
      "bytes; null means that the input does not tell.");
}

}  // namespace ashlar::report
