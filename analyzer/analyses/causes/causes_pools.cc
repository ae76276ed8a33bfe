// Causes that lie in who may use a free block: the stream and the pool it belongs to.
#include <algorithm>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "analyzer/analyses/causes/cause_table.h"
#include "analyzer/analyses/causes/evidence.h"

namespace ashlar::analyses {
namespace {

using timeline::BlockSpan;
using timeline::Timeline;

struct StreamUse {
  std::int64_t active = 0;
  std::int64_t peak = 0;
};

// Active memory of the default pool's large blocks, by stream: the peak of each, and of all together.
struct StreamPeaks {
  std::map<Stream, StreamUse> streams = {};
  StreamUse all = {};

  // What the streams' own peaks take beyond the common one.
  std::uint64_t ApartBytes() const {
    std::int64_t sum = 0;
    for (const auto& [stream, use] : streams) sum += use.peak;
    return static_cast<std::uint64_t>(sum - all.peak);
  }
};

StreamPeaks PeaksByStream(const Timeline& timeline) {
  struct Step {
    timeline::EventIndex event;
    std::int64_t bytes;
    Stream stream;
  };
  std::vector<Step> steps;
  for (const BlockSpan& block : timeline.blocks()) {
    if (!block.pool.IsDefault() || block.is_small_pool) continue;
    const auto bytes = static_cast<std::int64_t>(block.size_bytes);
    steps.push_back({block.alloc_event, bytes, block.stream});
    if (block.free_completed_event != timeline::kNever) {
      steps.push_back({block.free_completed_event, -bytes, block.stream});
    }
  }
  std::stable_sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) { return a.event < b.event; });
  StreamPeaks out;
  for (const Step& step : steps) {
    for (StreamUse* use : {&out.streams[step.stream], &out.all}) {
      use->active += step.bytes;
      use->peak = std::max(use->peak, use->active);
    }
  }
  return out;
}

std::string DescribeStreams(const StreamPeaks& peaks) {
  std::string out;
  int listed = 0;
  for (const auto& [stream, use] : peaks.streams) {
    if (use.peak == 0 || ++listed > 4) continue;
    absl::StrAppend(&out, out.empty() ? "" : ", ", "stream ", Handle(stream), " ",
                    FormatBytes(static_cast<std::uint64_t>(use.peak)));
  }
  return out;
}

// The growth that most memory of another stream would have spared.
const Growth* WorstGrowthBesideStreams(const CauseContext& context) {
  const Growth* worst = nullptr;
  for (const Growth& growth : context.history->growths) {
    if (!growth.pool.IsDefault() || growth.other_streams.largest < growth.request_bytes) continue;
    if (growth.own.largest >= growth.request_bytes) continue;  // not the stream kept it away
    if (worst == nullptr || growth.request_bytes > worst->request_bytes) worst = &growth;
  }
  return worst;
}

struct PoolSum {
  std::uint64_t pools = 0, reserved = 0, free = 0, most_reserved = 0;

  // One pool that all share, filled in turn: it would still hold what the widest has, and all that lives.
  std::uint64_t SharedBytes() const { return std::max(most_reserved, reserved - free); }
  std::uint64_t SparedBytes() const { return pools > 1 ? reserved - SharedBytes() : free; }
};

// Whether free memory of one pool would have served the other: the default pool beside private ones, or one private
// pool of several.
bool IsKeptApart(const Growth& growth, std::uint64_t pools) {
  return (growth.pool.IsDefault() || pools > 1) && growth.other_pools.largest >= growth.request_bytes &&
         growth.own.largest < growth.request_bytes;
}

// At the failure; without one, when most memory was reserved.
PoolSum PrivatePools(const CauseContext& context) {
  const timeline::Timeline& timeline = *context.history->timeline;
  const bool is_peak = !ShortageAt(context).has_value() && timeline.event_count() > 0;
  const timeline::State state = is_peak ? timeline.StateAt(timeline.reserved_peak().event) : context.history->state;
  std::map<PoolId, PoolSum> pools;
  for (const timeline::StateSegment& segment : state.segments) {
    if (segment.pool.IsDefault()) continue;
    pools[segment.pool].reserved += segment.size_bytes;
    for (const timeline::FreeRange& range : timeline::FreeRanges(segment)) pools[segment.pool].free += range.size_bytes;
  }
  PoolSum out;
  for (const auto& [id, pool] : pools) {
    ++out.pools;
    out.reserved += pool.reserved;
    out.free += pool.free;
    out.most_reserved = std::max(out.most_reserved, pool.reserved);
  }
  return out;
}

CauseFinding PoolsOfMessage(const OomMessageVerdict& verdict) {
  const CauseKind kind = CauseKind::kPrivatePools;
  const std::optional<std::uint64_t>& free = verdict.accounting.private_pool_bytes;
  if (!free.has_value())
    return NotInTrace(kind, "newer versions of PyTorch name private pools in the message, and a snapshot would tell");
  const std::string sentence =
      absl::StrCat(FormatBytes(*free), " are free in private pools and can serve no request ", "from outside");
  const bool is_enough = verdict.missing.has_value() &&
                         *free >= static_cast<std::uint64_t>(std::max<std::int64_t>(verdict.missing->value_bytes, 1));
  if (!is_enough || *free < kLeastMaterialBytes) return Absent(kind, sentence);
  CauseFinding out = Found(kind, Confidence::kLikely, *free);
  out.evidence.push_back(sentence);
  return out;
}

}  // namespace

CauseFinding DetectStreamsDoNotShare(const CauseContext& context) {
  const CauseKind kind = CauseKind::kStreamsDoNotShare;
  const StreamPeaks peaks = PeaksByStream(*context.history->timeline);
  if (peaks.streams.size() < 2) return Absent(kind, "all large blocks belong to one stream");
  const Growth* worst = WorstGrowthBesideStreams(context);
  if (worst == nullptr) return Absent(kind, "no request missed memory that only its stream kept away");
  std::uint64_t bytes = std::min(peaks.ApartBytes(), worst->other_streams.bytes);
  if (worst->is_failure) bytes = std::max(bytes, worst->other_streams.largest);
  const std::string growth =
      absl::StrCat("at event ", FormatCount(static_cast<std::uint64_t>(worst->event)), " stream ",
                   Handle(worst->stream), worst->is_failure ? " failed to get " : " obtained memory for ",
                   FormatBytes(worst->request_bytes), " while ", FormatBytes(worst->other_streams.bytes),
                   " lay free with other streams, ", FormatBytes(worst->other_streams.largest), " of it in one piece");
  if (!IsMaterial(context, bytes)) return Absent(kind, growth);
  CauseFinding out = Found(kind, Confidence::kLikely, bytes);
  out.evidence.push_back(growth);
  out.evidence.push_back(absl::StrCat("peaks of large blocks: ", DescribeStreams(peaks), "; all together ",
                                      FormatBytes(static_cast<std::uint64_t>(peaks.all.peak))));
  if (worst->stack != trace::kNoStack) out.stacks.push_back(worst->stack);
  return out;
}

CauseFinding DetectPrivatePools(const CauseContext& context) {
  const CauseKind kind = CauseKind::kPrivatePools;
  if (context.message.has_value()) return PoolsOfMessage(*context.message);
  if (!context.history.has_value()) return NotInTrace(kind, kRecordHistory);
  const PoolSum sum = PrivatePools(context);
  if (sum.pools == 0) return Absent(kind, "there are no private pools");
  const std::string sentence = absl::StrCat(
      FormatBytes(sum.free), " of ", FormatBytes(sum.reserved), " in ", FormatCount(sum.pools),
      sum.pools == 1 ? " private pool is free" : " private pools are free", " and can serve no request from outside");
  if (!IsMaterial(context, sum.SparedBytes())) return Absent(kind, sentence);
  const auto spared = std::find_if(context.history->growths.begin(), context.history->growths.end(),
                                   [&sum](const Growth& growth) { return IsKeptApart(growth, sum.pools); });
  if (spared == context.history->growths.end()) {
    CauseFinding out = Absent(kind, sentence);
    out.counter_evidence.push_back("no request of another pool would have fitted there");
    return out;
  }
  const std::optional<Shortage> shortage = ShortageAt(context);
  CauseFinding out = Found(kind, shortage.has_value() ? Confidence::kLikely : Confidence::kPossible, sum.SparedBytes());
  out.evidence.push_back(sentence);
  if (sum.pools > 1) {
    out.evidence.push_back(absl::StrCat("one pool for all would need ", FormatBytes(sum.SharedBytes()),
                                        " where they are filled in turn, and spare ", FormatBytes(sum.SparedBytes())));
  }
  out.evidence.push_back(absl::StrCat("at event ", FormatCount(static_cast<std::uint64_t>(spared->event)),
                                      spared->pool.IsDefault() ? " the default pool " : " a private pool ",
                                      spared->is_failure ? "failed to get " : "obtained memory for ",
                                      FormatBytes(spared->request_bytes), " while another pool had a free piece of ",
                                      FormatBytes(spared->other_pools.largest)));
  if (!shortage.has_value()) out.counter_evidence.push_back("no request failed; a graph may need the memory again");
  return out;
}

}  // namespace ashlar::analyses
