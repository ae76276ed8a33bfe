// Causes that lie in who may use a free block: the stream, the pool and the class of sizes it belongs to.
#include <string>

#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "analyzer/analyses/cause_detectors.h"

namespace ashlar::analyses {
namespace {

using timeline::EventIndex;

bool IsGrowth(const trace::Event& event) {
  return event.action == trace::Action::kSegmentAlloc || event.action == trace::Action::kSegmentMap;
}

std::uint64_t PendingAfter(const timeline::Timeline& timeline, EventIndex event) {
  const timeline::Totals& totals = timeline.TotalsAfter(event);
  return totals.active_bytes - totals.allocated_bytes;
}

// Pending frees do harm where new memory is obtained while they wait: the growth at which most waited; kNever without.
EventIndex WorstGrowth(const timeline::Timeline& timeline) {
  EventIndex worst = timeline::kNever;
  std::uint64_t most = 0;
  for (EventIndex i = 0; i < timeline.event_count(); ++i) {
    if (!IsGrowth(timeline.events()[static_cast<std::size_t>(i)])) continue;
    const std::uint64_t pending = PendingAfter(timeline, i);
    if (pending > most) {
      most = pending;
      worst = i;
    }
  }
  return worst;
}

}  // namespace

CauseFinding DetectRecordStream(const CauseInput& input) {
  const CauseKind kind = CauseKind::kRecordStream;
  const timeline::Timeline& timeline = *input.timeline;
  const EventIndex worst = WorstGrowth(timeline);
  if (worst == timeline::kNever) return Absent(kind, "no memory was obtained while freed blocks waited for a stream");
  const std::uint64_t bytes = PendingAfter(timeline, worst);
  std::uint64_t blocks = 0;
  CauseFinding out = Found(kind, Confidence::kLikely, bytes);
  for (const timeline::BlockSpan& block : timeline.blocks()) {
    if (!block.IsActiveAfter(worst) || block.IsLiveAfter(worst)) continue;
    ++blocks;
    if (out.stacks.empty() || out.stacks.back() != block.stack) out.stacks.push_back(block.stack);
  }
  const std::string sentence =
      absl::StrCat("at event ", FormatCount(static_cast<std::uint64_t>(worst)), " new memory was obtained while ",
                   FormatCount(blocks), " freed blocks of together ", FormatBytes(bytes), " waited for another stream");
  if (!IsMaterial(input, bytes)) return Absent(kind, sentence);
  out.evidence.push_back(sentence);
  return out;
}

}  // namespace ashlar::analyses
