#include "analyzer/exports/event_csv.h"

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "analyzer/analyses/state/live_stacks.h"
#include "analyzer/exports/block_of_event.h"
#include "analyzer/exports/flat_text.h"

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

}  // namespace ashlar::exports
