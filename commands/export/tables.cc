#include "commands/export/tables.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "analyzer/analyses/state/live_stacks.h"
#include "commands/export/event_walk.h"
#include "commands/export/exported_run.h"

namespace ashlar::exports {
namespace {

constexpr TableColumnType kInteger = TableColumnType::kInteger, kReal = TableColumnType::kReal,
                          kText = TableColumnType::kText;

constexpr TableColumn kMeta[] = {{"device", kInteger}, {"key", kText}, {"value", kText}};
constexpr TableColumn kAccounting[] = {{"device", kInteger}, {"part", kText}, {"bytes", kInteger}};
constexpr TableColumn kSegments[] = {
    {"device", kInteger}, {"segment", kInteger},     {"address", kInteger},   {"most_bytes", kInteger},
    {"stream", kInteger}, {"pool", kText},           {"is_small", kInteger},  {"is_expandable", kInteger},
    {"stack", kInteger},  {"begin_event", kInteger}, {"end_event", kInteger}, {"bytes_at_moment", kInteger}};
constexpr TableColumn kSegmentExtents[] = {
    {"device", kInteger}, {"segment", kInteger}, {"event", kInteger}, {"address", kInteger}, {"size_bytes", kInteger}};
constexpr TableColumn kBlocks[] = {{"device", kInteger},
                                   {"block", kInteger},
                                   {"segment", kInteger},
                                   {"address", kInteger},
                                   {"size_bytes", kInteger},
                                   {"requested_bytes", kInteger},
                                   {"stream", kInteger},
                                   {"pool", kText},
                                   {"is_small", kInteger},
                                   {"stack", kInteger},
                                   {"alloc_event", kInteger},
                                   {"free_requested_event", kInteger},
                                   {"free_completed_event", kInteger},
                                   {"state_at_moment", kText},
                                   {"holder", kInteger}};
constexpr TableColumn kEvents[] = {{"device", kInteger},          {"event", kInteger},
                                   {"time_us", kInteger},         {"action", kText},
                                   {"address", kInteger},         {"size_bytes", kInteger},
                                   {"block", kInteger},           {"stream", kInteger},
                                   {"stack", kInteger},           {"label", kText},
                                   {"allocated_bytes", kInteger}, {"active_bytes", kInteger},
                                   {"reserved_bytes", kInteger},  {"requested_bytes", kInteger}};
constexpr TableColumn kFrames[] = {{"frame", kInteger}, {"file", kText}, {"line", kInteger}, {"function", kText}};
constexpr TableColumn kStacks[] = {{"stack", kInteger}, {"line", kText}};
constexpr TableColumn kStackFrames[] = {{"stack", kInteger}, {"depth", kInteger}, {"frame", kInteger}};
constexpr TableColumn kPhases[] = {{"device", kInteger}, {"kind", kText},           {"number", kInteger},
                                   {"name", kText},      {"begin_event", kInteger}, {"end_event", kInteger}};
constexpr TableColumn kWhatIf[] = {{"device", kInteger},
                                   {"number", kInteger},
                                   {"conf", kText},
                                   {"is_baseline", kInteger},
                                   {"peak_reserved_bytes", kInteger},
                                   {"peak_allocated_bytes", kInteger},
                                   {"failures", kInteger},
                                   {"driver_calls", kInteger},
                                   {"retries", kInteger},
                                   {"device_seconds", kReal},
                                   {"feasible", kInteger},
                                   {"gets_past", kInteger},
                                   {"risks", kText}};
constexpr TableColumn kCauses[] = {{"device", kInteger}, {"number", kInteger},  {"name", kText},
                                   {"finding", kText},   {"confidence", kText}, {"bytes", kInteger},
                                   {"sentence", kText},  {"evidence", kText},   {"counter_evidence", kText},
                                   {"missing", kText},   {"lines", kText}};
constexpr TableColumn kHolders[] = {{"device", kInteger},
                                    {"holder", kInteger},
                                    {"kind", kText},
                                    {"name", kText},
                                    {"file", kText},
                                    {"line", kInteger},
                                    {"function", kText},
                                    {"bytes", kInteger},
                                    {"blocks", kInteger},
                                    {"since_step", kInteger},
                                    {"bytes_per_step", kInteger}};

constexpr TableDefinition kTables[] = {{"meta", kMeta},
                                       {"accounting", kAccounting},
                                       {"segments", kSegments},
                                       {"segment_extents", kSegmentExtents},
                                       {"blocks", kBlocks},
                                       {"events", kEvents},
                                       {"frames", kFrames},
                                       {"stacks", kStacks},
                                       {"stack_frames", kStackFrames},
                                       {"phases", kPhases},
                                       {"what_if", kWhatIf},
                                       {"causes", kCauses},
                                       {"holders", kHolders}};
static_assert(sizeof(kTables) / sizeof(kTables[0]) == kTableCount);

}  // namespace

absl::Span<const TableDefinition> TableDefinitions() { return kTables; }

namespace {

using timeline::EventIndex;

Cell Whole(std::uint64_t value) { return static_cast<std::int64_t>(value); }
Cell Flag(bool value) { return std::int64_t{value ? 1 : 0}; }
Cell Text(absl::string_view text) { return text.empty() ? Cell{} : Cell(text); }
Cell StackCell(trace::StackId stack) { return stack == trace::kNoStack ? Cell{} : Cell(std::int64_t{stack}); }
Cell EventCell(EventIndex event) {
  return event == timeline::kBeforeWindow || event == timeline::kNever ? Cell{} : Cell(event);
}
std::string PoolText(PoolId pool) { return pool.IsDefault() ? "" : absl::StrCat(pool.first, ",", pool.second); }

void WriteSegments(const ExportedRun& run, TableSink& out) {
  std::int64_t index = 0;
  for (const timeline::SegmentSpan& segment : run.traced.timeline.segments()) {
    std::uint64_t most = 0;
    for (const timeline::SegmentExtent& extent : segment.extents) {
      most = std::max(most, extent.size_bytes);
      out.Add(TableId::kSegmentExtents, {std::int64_t{run.device()}, index, EventCell(extent.event),
                                         Whole(extent.address), Whole(extent.size_bytes)});
    }
    const bool is_there = segment.ExistsAfter(run.moment);
    const timeline::SegmentExtent& shown = is_there ? segment.ExtentAfter(run.moment) : segment.extents.front();
    const std::string pool = PoolText(segment.pool);
    out.Add(TableId::kSegments,
            {std::int64_t{run.device()}, index, Whole(shown.address), Whole(most), Whole(Handle(segment.stream)),
             Text(pool), Flag(segment.is_small_pool), Flag(segment.is_expandable), StackCell(segment.stack),
             EventCell(segment.BeginEvent()), EventCell(segment.end_event), Whole(is_there ? shown.size_bytes : 0)});
    ++index;
  }
}

Cell StateAtMoment(const timeline::BlockSpan& block, EventIndex moment) {
  if (block.IsLiveAfter(moment)) return absl::string_view("live");
  return block.IsActiveAfter(moment) ? Cell(absl::string_view("pending")) : Cell{};
}

// Who holds the live blocks, by name; nullptr: the trace does not say.
const analyses::HeldByName* HeldOf(const ExportedRun& run) {
  if (!run.explanation.has_value()) return nullptr;
  const std::optional<analyses::HeldByName>& names = run.explanation->memory.holders.names;
  return names.has_value() ? &*names : nullptr;
}

Cell HolderCell(const analyses::HeldByName* held, std::int64_t block) {
  if (held == nullptr) return {};
  const auto found = held->row_of.find(static_cast<std::size_t>(block));
  return found == held->row_of.end() ? Cell{} : Whole(found->second);
}

void WriteHolders(const ExportedRun& run, TableSink& out) {
  const analyses::HeldByName* const held = HeldOf(run);
  if (held == nullptr) return;
  std::int64_t number = 0;
  for (const analyses::HeldRow& row : held->rows) {
    const trace::Holder& holder = row.holder;
    out.Add(TableId::kHolders,
            {std::int64_t{run.device()}, number++, Text(holder.kind), Text(holder.name), Text(holder.file),
             holder.line == 0 ? Cell{} : Cell(holder.line), Text(holder.function), Whole(row.bytes), Whole(row.blocks),
             row.growth.has_value() ? Whole(row.growth->since_step) : Cell{},
             row.growth.has_value() ? Whole(row.growth->bytes_per_step) : Cell{}});
  }
}

void WriteBlocks(const ExportedRun& run, TableSink& out) {
  const analyses::HeldByName* const held = HeldOf(run);
  std::int64_t index = 0;
  for (const timeline::BlockSpan& block : run.traced.timeline.blocks()) {
    const std::string pool = PoolText(block.pool);
    out.Add(TableId::kBlocks,
            {std::int64_t{run.device()}, index, std::int64_t{block.segment}, Whole(block.address),
             Whole(block.size_bytes), block.requested_bytes.has_value() ? Whole(*block.requested_bytes) : Cell{},
             Whole(Handle(block.stream)), Text(pool), Flag(block.is_small_pool), StackCell(block.stack),
             EventCell(block.alloc_event), EventCell(block.free_requested_event), EventCell(block.free_completed_event),
             StateAtMoment(block, run.moment), HolderCell(held, index)});
    ++index;
  }
}

Cell LabelCell(const ExportedRun& run, trace::LabelId id) {
  if (run.snapshot == nullptr || id == trace::kNoLabel) return {};
  const trace::Label& label = run.snapshot->labels.label(id);
  return Text(label.user_metadata.empty() ? label.internal_metadata : label.user_metadata);
}

void WriteEvents(const ExportedRun& run, TableSink& out) {
  const timeline::Timeline& timeline = run.traced.timeline;
  BlockOfEvent blocks(timeline);
  for (EventIndex i = 0; i < timeline.event_count(); ++i) {
    const trace::Event& event = timeline.events()[static_cast<std::size_t>(i)];
    const timeline::BlockSpan* const block = blocks.Next(event);
    const timeline::Totals& totals = timeline.TotalsAfter(i);
    out.Add(TableId::kEvents,
            {std::int64_t{run.device()}, i, event.time_us == trace::kNoTime ? Cell{} : Cell(event.time_us),
             trace::ActionName(event.action), event.action == trace::Action::kOom ? Cell{} : Whole(event.address),
             Whole(event.size_bytes), block == nullptr ? Cell{} : Cell(std::int64_t{block - timeline.blocks().data()}),
             Whole(Handle(event.stream)), StackCell(event.stack), LabelCell(run, event.label),
             Whole(totals.allocated_bytes), Whole(totals.active_bytes), Whole(totals.reserved_bytes),
             Whole(totals.requested_bytes)});
  }
}

void WritePhases(const ExportedRun& run, TableSink& out) {
  std::int64_t number = 0;
  for (const analyses::EventRange& step : run.steps.steps) {
    ++number;
    out.Add(TableId::kPhases, {std::int64_t{run.device()}, absl::string_view("step"), number, Cell{},
                               EventCell(step.begin), EventCell(step.end)});
  }
  number = 0;
  for (const analyses::Phase& phase : run.steps.phases) {
    ++number;
    out.Add(TableId::kPhases, {std::int64_t{run.device()}, absl::string_view("phase"), number, Text(phase.name),
                               EventCell(phase.events.begin), EventCell(phase.events.end)});
  }
}

void WriteMeta(const ExportedRun& run, TableSink& out) {
  const auto add = [&](absl::string_view key, const std::string& value) {
    if (!value.empty()) out.Add(TableId::kMeta, {std::int64_t{run.device()}, key, absl::string_view(value)});
  };
  add("schema", "1");
  add("source", run.traced.source);
  add("moment", MomentInWords(run));
  add("moment_event", run.moment == timeline::kBeforeWindow ? "" : absl::StrCat(run.moment));
  if (!run.explanation.has_value()) return;
  const answers::Explanation& explained = *run.explanation;
  add("headline", explained.verdict.headline);
  add("verdict", std::string(analyses::VerdictName(explained.verdict.kind)));
  add("paste", explained.what_ifs.advice.paste.value_or(""));
  if (explained.what_ifs.fidelity.has_value()) {
    add("fidelity_matched", absl::StrCat(explained.what_ifs.fidelity->matched));
    add("fidelity_total", absl::StrCat(explained.what_ifs.fidelity->total));
  }
}

void WriteAccounting(const ExportedRun& run, TableSink& out) {
  for (const auto& [part, bytes] : AccountingParts(run.explanation->memory.accounting)) {
    out.Add(TableId::kAccounting,
            {std::int64_t{run.device()}, absl::string_view(part), bytes.has_value() ? Whole(*bytes) : Cell{}});
  }
}

void WriteWhatIfs(const ExportedRun& run, TableSink& out) {
  std::int64_t number = 0;
  for (const whatif::WhatIfRow& row : run.explanation->what_ifs.rows) {
    std::string risks;
    for (const whatif::Risk& risk : row.risks) absl::StrAppend(&risks, risks.empty() ? "" : "\n", risk.sentence);
    ++number;
    out.Add(TableId::kWhatIf, {std::int64_t{run.device()}, number, absl::string_view(row.conf), Flag(row.is_baseline),
                               Whole(row.peak_reserved_bytes), Whole(row.peak_allocated_bytes), Whole(row.ooms),
                               Whole(row.driver_calls), Whole(row.retries), static_cast<double>(row.cost_ns) * 1e-9,
                               row.feasible.has_value() ? Flag(*row.feasible) : Cell{},
                               row.gets_past.has_value() ? Flag(*row.gets_past) : Cell{}, Text(risks)});
  }
}

std::string Lines(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) absl::StrAppend(&out, out.empty() ? "" : "\n", line);
  return out;
}

void WriteCauses(const ExportedRun& run, TableSink& out) {
  std::int64_t number = 0;
  for (const answers::ExplainedCause& cause : run.explanation->why.causes) {
    const analyses::CauseFinding& finding = cause.finding;
    const bool is_found = finding.finding == analyses::Finding::kFound;
    const std::string evidence = Lines(finding.evidence), against = Lines(finding.counter_evidence);
    const std::string lines = Lines(cause.lines);
    ++number;
    out.Add(TableId::kCauses, {std::int64_t{run.device()}, number, analyses::CauseName(finding.kind),
                               analyses::FindingName(finding.finding),
                               is_found ? Cell(analyses::ConfidenceName(finding.confidence)) : Cell{},
                               is_found ? Whole(finding.bytes) : Cell{}, analyses::CauseSentence(finding.kind),
                               Text(evidence), Text(against), Text(finding.missing), Text(lines)});
  }
}

}  // namespace

void WriteRunTables(const ExportedRun& run, TableSink& out) {
  WriteMeta(run, out);
  WriteSegments(run, out);
  WriteBlocks(run, out);
  WriteEvents(run, out);
  WritePhases(run, out);
  if (!run.explanation.has_value()) return;
  WriteAccounting(run, out);
  WriteWhatIfs(run, out);
  WriteCauses(run, out);
  WriteHolders(run, out);
}

void WriteStackTables(const trace::StackTable& stacks, TableSink& out) {
  for (trace::FrameId id = 0; id < stacks.frame_count(); ++id) {
    const trace::Frame& frame = stacks.frame(id);
    out.Add(TableId::kFrames,
            {std::int64_t{id}, Text(frame.file), frame.line < 0 ? Cell{} : Cell(frame.line), Text(frame.function)});
  }
  for (trace::StackId id = 0; id < stacks.stack_count(); ++id) {
    const std::string line = analyses::StackLabel(stacks, id);
    out.Add(TableId::kStacks, {std::int64_t{id}, absl::string_view(line)});
    std::int64_t depth = 0;
    for (const trace::FrameId frame : stacks.stack(id)) {
      out.Add(TableId::kStackFrames, {std::int64_t{id}, depth++, std::int64_t{frame}});
    }
  }
}

}  // namespace ashlar::exports
