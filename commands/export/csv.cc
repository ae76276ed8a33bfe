#include "commands/export/csv.h"

#include <array>
#include <charconv>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "analyzer/analyses/state/live_stacks.h"
#include "analyzer/formats/rmm/rmm_log.h"
#include "commands/export/event_walk.h"
#include "commands/export/flat_text.h"

namespace ashlar::exports {
namespace {

constexpr std::size_t kPieceBytes = 64 << 10;

// As fields of CSV; each stack is looked at once.
class StackLines {
 public:
  explicit StackLines(const trace::StackTable& stacks) : stacks_(stacks) {}

  const std::string& Of(trace::StackId stack) {
    const auto [known, is_new] = lines_.try_emplace(stack);
    if (is_new && !stacks_.stack(stack).empty()) AppendCsvText(analyses::StackLabel(stacks_, stack), known->second);
    return known->second;
  }

 private:
  const trace::StackTable& stacks_;
  absl::flat_hash_map<trace::StackId, std::string> lines_;
};

void AppendLabel(const ExportedRun& run, trace::LabelId id, std::string& out) {
  if (run.snapshot == nullptr || id == trace::kNoLabel) return;
  const trace::Label& label = run.snapshot->labels.label(id);
  AppendCsvText(label.user_metadata.empty() ? label.internal_metadata : label.user_metadata, out);
}

}  // namespace

void WriteEventCsvHeader(ByteSink& out) {
  out.Append(
      "device,event,time_us,action,address,size_bytes,block_bytes,stream,pool,line,label,allocated_bytes,active_bytes,"
      "reserved_bytes,requested_bytes\n");
}

void WriteEventCsv(const ExportedRun& run, ByteSink& out) {
  const timeline::Timeline& timeline = run.traced.timeline;
  StackLines lines(run.traced.stacks);
  BlockOfEvent blocks(timeline);
  std::string piece;
  for (timeline::EventIndex i = 0; i < timeline.event_count(); ++i) {
    const trace::Event& event = timeline.events()[static_cast<std::size_t>(i)];
    const timeline::BlockSpan* const block = blocks.Next(event);
    const timeline::Totals& totals = timeline.TotalsAfter(i);
    absl::StrAppend(&piece, run.device(), ",", i, ",");
    if (event.time_us != trace::kNoTime) absl::StrAppend(&piece, event.time_us);
    absl::StrAppend(&piece, ",", trace::ActionName(event.action), ",");
    if (event.action != trace::Action::kOom) absl::StrAppend(&piece, event.address);
    absl::StrAppend(&piece, ",", event.size_bytes, ",");
    if (block != nullptr) absl::StrAppend(&piece, block->size_bytes);
    absl::StrAppend(&piece, ",", Handle(event.stream), ",");
    if (block != nullptr && !block->pool.IsDefault()) {
      AppendCsvText(absl::StrCat(block->pool.first, ",", block->pool.second), piece);
    }
    absl::StrAppend(&piece, ",", lines.Of(event.stack), ",");
    AppendLabel(run, event.label, piece);
    absl::StrAppend(&piece, ",", totals.allocated_bytes, ",", totals.active_bytes, ",", totals.reserved_bytes, ",");
    absl::StrAppend(&piece, totals.requested_bytes, "\n");
    if (piece.size() < kPieceBytes) continue;
    out.Append(piece);
    piece.clear();
  }
  out.Append(piece);
}

namespace {

// With as few digits as read back to the same number.
void AppendReal(double real, std::string& out) {
  std::array<char, 32> digits;
  out.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), real).ptr);
}

void AppendCell(const Cell& cell, std::string& out) {
  if (const auto* number = std::get_if<std::int64_t>(&cell)) absl::StrAppend(&out, *number);
  if (const auto* real = std::get_if<double>(&cell)) AppendReal(*real, out);
  if (const auto* text = std::get_if<absl::string_view>(&cell)) AppendCsvText(*text, out);
}

}  // namespace

CsvTables::CsvTables(const std::function<ByteSink&(const TableDefinition&)>& sink_of) {
  for (std::size_t i = 0; i < sinks_.size(); ++i) {
    const TableDefinition& table = TableDefinitions()[i];
    sinks_[i] = &sink_of(table);
    line_.clear();
    for (const TableColumn& column : table.columns) absl::StrAppend(&line_, line_.empty() ? "" : ",", column.name);
    sinks_[i]->Append(line_ + "\n");
  }
}

void CsvTables::AddRow(TableId table, absl::Span<const Cell> cells) {
  line_.clear();
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) line_ += ',';
    AppendCell(cells[i], line_);
  }
  line_ += '\n';
  sinks_[static_cast<std::size_t>(table)]->Append(line_);
}

namespace {

using formats::RmmAction;

}  // namespace

std::vector<trace::Note> WriteRmmLog(const ExportedRun& run, ByteSink& out) {
  const timeline::Timeline& timeline = run.traced.timeline;
  const EventClock clock(timeline.events());
  formats::RmmLogWriter log(out);
  std::uint64_t older = 0, others = 0;
  for (const timeline::BlockSpan& block : timeline.blocks()) {
    if (block.alloc_event != timeline::kBeforeWindow) break;
    // One that was freed before the window, and waits for work, is no request of it.
    if (block.free_requested_event == timeline::kBeforeWindow) continue;
    ++older;
    log.Write({RmmAction::kAllocate, block.address, block.AskedBytes(), block.stream,
               clock.MicrosOf(timeline::kBeforeWindow)});
  }
  BlockOfEvent blocks(timeline);
  for (timeline::EventIndex i = 0; i < timeline.event_count(); ++i) {
    const trace::Event& event = timeline.events()[static_cast<std::size_t>(i)];
    const timeline::BlockSpan* const block = blocks.Next(event);
    if (event.action == trace::Action::kAlloc && block != nullptr) {
      log.Write({RmmAction::kAllocate, block->address, block->AskedBytes(), block->stream, clock.MicrosOf(i)});
    } else if (event.action == trace::Action::kFreeRequested && block != nullptr) {
      log.Write({RmmAction::kFree, block->address, block->AskedBytes(), block->stream, clock.MicrosOf(i)});
    } else if (event.action == trace::Action::kOom) {
      log.Write({RmmAction::kAllocateFailure, 0, event.size_bytes, event.stream, clock.MicrosOf(i)});
    } else if (event.action != trace::Action::kFreeCompleted) {
      ++others;
    }
  }
  return {{"rmm_older_blocks", "requests for blocks older than the trace, written first", older},
          {"rmm_events", "events that are no request (segments, marks)", others},
          {"rmm_time", "times: events are written one microsecond apart", clock.has_time() ? 0u : 1u},
          {"rmm_stacks", "call stacks", run.traced.stacks.stack_count()}};
}

}  // namespace ashlar::exports
