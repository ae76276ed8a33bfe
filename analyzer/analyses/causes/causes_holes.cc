// Causes that lie in holes: free memory of segments that still hold a block in use.

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "allocator/policy/size_rule.h"
#include "analyzer/analyses/causes/cause_table.h"
#include "analyzer/analyses/causes/evidence.h"
#include "analyzer/analyses/holders/variables.h"
#include "analyzer/analyses/state/timeline_blocks.h"

namespace ashlar::analyses {
namespace {

using timeline::BlockSpan;
using timeline::EventIndex;

// Of a segment: holders that fill more than this are no small blocks.
constexpr double kPinnedUsedShare = 0.5;
// Of a segment: where a request failed, holders of no more than this are small, however young they are.
constexpr double kSmallHolderShare = 0.25;
// Two blocks of 7 MiB in 20 MiB are the common case of the medium class.
constexpr double kMediumUsedShare = 0.75;
constexpr double kSmallPoolUsedShare = 0.5;
// A block is long-lived when it is older than this share of the freed blocks became.
constexpr double kLifetimeShare = 0.9;

// A segment with what holds it at the moment.
struct HeldSegment {
  const timeline::StateSegment* segment = nullptr;
  std::uint64_t used_bytes = 0;
  std::vector<std::size_t> holders = {};  // indices in Timeline::blocks()

  std::uint64_t HoleBytes() const { return segment->size_bytes - used_bytes; }
  double UsedShare() const { return static_cast<double>(used_bytes) / static_cast<double>(segment->size_bytes); }
};

// The default pool's segments with holes behind at least one block, by address.
std::vector<HeldSegment> HeldSegments(const CauseContext& context) {
  const std::vector<std::size_t> active = ActiveBlocks(*context.history->timeline, context.history->moment);
  auto next = active.begin();
  std::vector<HeldSegment> out;
  for (const timeline::StateSegment& segment : context.history->state.segments) {
    HeldSegment held;
    held.segment = &segment;
    for (const timeline::StateBlock& block : segment.blocks) {
      held.used_bytes += block.size_bytes;
      held.holders.push_back(*next++);
    }
    if (!segment.pool.IsDefault() || segment.blocks.empty() || held.used_bytes == segment.size_bytes) continue;
    out.push_back(std::move(held));
  }
  return out;
}

bool IsMediumClass(std::uint64_t bytes) { return !policy::IsSmall(bytes) && bytes < policy::kMinLargeBytes; }

// Of the large pool, obtained for requests of 1 to 10 MiB, and holding nothing else.
bool IsMediumSegment(const CauseContext& context, const HeldSegment& held) {
  const std::uint64_t medium_bytes = context.history->options != nullptr ? context.history->options->large_segment_bytes
                                                                         : policy::kDefaultLargeSegmentBytes;
  if (held.segment->is_small_pool || held.segment->is_expandable || held.segment->size_bytes != medium_bytes) {
    return false;
  }
  return std::all_of(held.holders.begin(), held.holders.end(), [&context](std::size_t index) {
    return IsMediumClass(context.history->timeline->blocks()[index].size_bytes);
  });
}

// In events: kLifetimeShare of the blocks that lived and died in the window died younger. nullopt where none did.
std::optional<EventIndex> CommonLifetime(const timeline::Timeline& timeline) {
  std::vector<EventIndex> lifetimes;
  for (const BlockSpan& block : timeline.blocks()) {
    if (block.alloc_event == timeline::kBeforeWindow || block.free_requested_event == timeline::kNever) continue;
    lifetimes.push_back(block.free_requested_event - block.alloc_event);
  }
  if (lifetimes.empty()) return std::nullopt;
  const auto at = static_cast<std::ptrdiff_t>(kLifetimeShare * static_cast<double>(lifetimes.size() - 1));
  std::nth_element(lifetimes.begin(), lifetimes.begin() + at, lifetimes.end());
  return lifetimes[static_cast<std::size_t>(at)];
}

// Events it has lived at the moment; of one older than the window, at least the window's.
EventIndex AgeOf(const CauseContext& context, const BlockSpan& block) {
  return context.history->moment - block.alloc_event;
}

bool IsHeldByOldBlocks(const CauseContext& context, const HeldSegment& held, EventIndex lifetime) {
  std::uint64_t old_bytes = 0;
  for (const std::size_t index : held.holders) {
    const BlockSpan& block = context.history->timeline->blocks()[index];
    if (AgeOf(context, block) > lifetime) old_bytes += block.size_bytes;
  }
  return 2 * old_bytes >= held.used_bytes;
}

struct HoleSum {
  std::uint64_t segments = 0, segment_bytes = 0, used_bytes = 0, holders = 0;
  const HeldSegment* widest = nullptr;
  std::uint64_t HoleBytes() const { return segment_bytes - used_bytes; }

  void Add(const HeldSegment& held, CauseFinding& finding) {
    ++segments;
    segment_bytes += held.segment->size_bytes;
    used_bytes += held.used_bytes;
    holders += held.holders.size();
    finding.blocks.insert(finding.blocks.end(), held.holders.begin(), held.holders.end());
    if (widest == nullptr || held.HoleBytes() > widest->HoleBytes()) widest = &held;
  }
  std::string Sentence() const {
    return absl::StrCat(FormatCount(segments), segments == 1 ? " segment of " : " segments of together ",
                        FormatBytes(segment_bytes), segments == 1 ? " is held by " : " are held by ",
                        FormatCount(holders), holders == 1 ? " block of " : " blocks of together ",
                        FormatBytes(used_bytes), ": ", FormatBytes(HoleBytes()), " of holes");
  }
};

void AddWidest(const CauseContext& context, const HoleSum& sum, CauseFinding& out) {
  const BlockSpan& holder = context.history->timeline->blocks()[sum.widest->holders.front()];
  out.evidence.push_back(absl::StrCat("the widest: ", FormatBytes(sum.widest->HoleBytes()), " of a segment of ",
                                      FormatBytes(sum.widest->segment->size_bytes), ", behind ",
                                      FormatBytes(sum.widest->used_bytes), " from ", LabelOf(context, holder.stack)));
}

// Whether a failed request would have passed with these holes returned.
void WeighAgainstFailure(const CauseContext& context, std::uint64_t segment_bytes, CauseFinding& out) {
  const std::optional<Shortage> shortage = ShortageAt(context);
  if (!shortage.has_value() || shortage->MissingBytes() == 0) return;
  if (segment_bytes >= shortage->MissingBytes()) {
    out.evidence.push_back(absl::StrCat("with them returned to the device the failed request of ",
                                        FormatBytes(shortage->request_bytes), " would have passed"));
  } else {
    out.counter_evidence.push_back(absl::StrCat("with them returned the failed request would still be short by ",
                                                FormatBytes(shortage->MissingBytes() - segment_bytes)));
    out.confidence = Confidence::kPossible;
  }
}

// The error is raised only after every segment without a block in use went back, so what a message reports as reserved
// and not allocated lies behind such blocks. Which they are it does not say.
CauseFinding PinnedOfMessage(const OomMessageVerdict& verdict) {
  const CauseKind kind = CauseKind::kPinnedSegment;
  const std::optional<std::uint64_t>& stranded = verdict.accounting.stranded_bytes;
  if (verdict.kind != OomVerdict::kFragmentation || !stranded.has_value()) return NotInTrace(kind, kRecordHistory);
  CauseFinding out = Found(kind, Confidence::kPossible, *stranded);
  out.evidence.push_back(absl::StrCat(FormatBytes(*stranded), " are reserved and not allocated after the cache has ",
                                      "returned what it could: they lie behind blocks in use"));
  out.counter_evidence.push_back("which blocks, and how small and old they are, is not in this message");
  return out;
}

// The variable that has most of the blocks which hold the segments: no call under way, and no model, which must be
// there.
void NameHolder(const CauseContext& context, CauseFinding& out) {
  const HeldByName* const held = context.history->Owners();
  if (held == nullptr) return;
  const std::set<std::size_t> holders(out.blocks.begin(), out.blocks.end());
  for (const Variable& variable : VariablesOf(*held)) {
    if (variable.role != OwnerRole::kVariable || variable.IsOfRunningPass(*held)) continue;
    const auto has = [&holders](std::size_t block) { return holders.count(block) > 0; };
    const auto count = static_cast<std::size_t>(std::count_if(variable.blocks.begin(), variable.blocks.end(), has));
    if (2 * count <= holders.size()) continue;
    out.holders.push_back(variable.Holder(*held));
    out.evidence.push_back(absl::StrCat(HolderPlace(out.holders.front()), " keeps ", FormatCount(count), " of them"));
    return;
  }
}

CauseFinding DetectPinnedSegment(const CauseContext& context) {
  const CauseKind kind = CauseKind::kPinnedSegment;
  if (context.message.has_value()) return PinnedOfMessage(*context.message);
  if (!context.history.has_value()) return NotInTrace(kind, kRecordHistory);
  const std::optional<EventIndex> lifetime = CommonLifetime(*context.history->timeline);
  CauseFinding out = Found(kind, lifetime.has_value() ? Confidence::kLikely : Confidence::kPossible, 0);
  const bool is_failure = ShortageAt(context).has_value();
  std::uint64_t young_bytes = 0;
  HoleSum sum;
  const std::vector<HeldSegment> segments = HeldSegments(context);
  for (const HeldSegment& held : segments) {
    if (held.segment->is_small_pool || held.segment->is_expandable || held.UsedShare() > kPinnedUsedShare) continue;
    if (IsMediumSegment(context, held)) continue;
    const bool is_small = is_failure && held.UsedShare() <= kSmallHolderShare;
    const bool is_old = !lifetime.has_value() || IsHeldByOldBlocks(context, held, *lifetime);
    if (!is_small && !is_old) continue;
    young_bytes += is_old ? 0 : held.HoleBytes();
    sum.Add(held, out);
  }
  if (!IsMaterial(context, sum.HoleBytes())) {
    return Absent(kind, absl::StrCat("holes behind small long-lived blocks take ", FormatBytes(sum.HoleBytes())));
  }
  out.bytes = sum.HoleBytes();
  SetStacks(context, out);
  out.evidence.push_back(sum.Sentence());
  NameHolder(context, out);
  AddWidest(context, sum, out);
  if (2 * young_bytes > out.bytes) {
    out.evidence.push_back(absl::StrCat("the holders fill no more than a quarter of segments with ",
                                        FormatBytes(young_bytes), " of these holes, however old they are"));
  } else if (lifetime.has_value()) {
    out.evidence.push_back(absl::StrCat("most of that is held by blocks older than the ",
                                        FormatCount(static_cast<std::uint64_t>(*lifetime)),
                                        " events in which nine of ten freed blocks came and went"));
  } else {
    out.counter_evidence.push_back("how long blocks live is not in this trace: none was freed in it");
  }
  WeighAgainstFailure(context, sum.segment_bytes, out);
  // Who holds them is named, and without them the request would have passed.
  const std::optional<Shortage> shortage = ShortageAt(context);
  const bool is_shown = out.confidence == Confidence::kLikely && !out.holders.empty() && shortage.has_value() &&
                        shortage->MissingBytes() > 0;
  if (is_shown) out.confidence = Confidence::kProven;
  return out;
}

CauseFinding DetectMediumRequests(const CauseContext& context) {
  const CauseKind kind = CauseKind::kMediumRequests;
  CauseFinding out = Found(kind, Confidence::kLikely, 0);
  HoleSum sum;
  const std::vector<HeldSegment> segments = HeldSegments(context);
  for (const HeldSegment& held : segments) {
    if (IsMediumSegment(context, held) && held.UsedShare() <= kMediumUsedShare) sum.Add(held, out);
  }
  const std::string sentence =
      absl::StrCat("segments for requests of 1 to 10 MiB: ", sum.segments == 0 ? "none with holes" : sum.Sentence());
  if (!IsMaterial(context, sum.HoleBytes())) return Absent(kind, sentence);
  out.bytes = sum.HoleBytes();
  SetStacks(context, out);
  out.evidence.push_back(sentence);
  AddWidest(context, sum, out);
  WeighAgainstFailure(context, sum.segment_bytes, out);
  return out;
}

CauseFinding DetectSmallLargeSplit(const CauseContext& context) {
  const CauseKind kind = CauseKind::kSmallLargeSplit;
  CauseFinding out = Found(kind, Confidence::kLikely, 0);
  HoleSum sum;
  const std::vector<HeldSegment> segments = HeldSegments(context);
  for (const HeldSegment& held : segments) {
    if (held.segment->is_small_pool && held.UsedShare() <= kSmallPoolUsedShare) sum.Add(held, out);
  }
  const std::string sentence = absl::StrCat("the pool for requests up to 1 MiB: ",
                                            sum.segments == 0 ? "no segment is half empty" : sum.Sentence());
  if (!IsMaterial(context, sum.HoleBytes())) return Absent(kind, sentence);
  out.bytes = sum.HoleBytes();
  SetStacks(context, out);
  out.evidence.push_back(sentence);
  const std::optional<Shortage> shortage = ShortageAt(context);
  if (shortage.has_value() && policy::IsSmall(shortage->request_bytes)) {
    return Absent(kind, absl::StrCat(sentence, "; the failed request was small itself"));
  }
  out.evidence.push_back("larger requests cannot be served from there");
  WeighAgainstFailure(context, sum.segment_bytes, out);
  return out;
}

}  // namespace

// Causes that lie in who may use a free block: the stream and the pool it belongs to.

namespace {

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
const TrafficGrowth* WorstGrowthBesideStreams(const CauseContext& context) {
  const TrafficGrowth* worst = nullptr;
  for (const TrafficGrowth& growth : context.history->growths) {
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
bool IsKeptApart(const TrafficGrowth& growth, std::uint64_t pools) {
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

CauseFinding DetectStreamsDoNotShare(const CauseContext& context) {
  const CauseKind kind = CauseKind::kStreamsDoNotShare;
  const StreamPeaks peaks = PeaksByStream(*context.history->timeline);
  if (peaks.streams.size() < 2) return Absent(kind, "all large blocks belong to one stream");
  const TrafficGrowth* worst = WorstGrowthBesideStreams(context);
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
                                   [&sum](const TrafficGrowth& growth) { return IsKeptApart(growth, sum.pools); });
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

constexpr CauseSpec kHolesCauses[] = {
    {.kind = CauseKind::kPinnedSegment,
     .name = "pinned_segment",
     .sentence = "Small long-lived blocks keep large segments from being reused or returned",
     .needs = CauseNeeds::kAnything,
     .detect = DetectPinnedSegment,
     .fixes = {CauseFix::kApart, CauseFix::kExpandableHint},
     .holes = CauseHoles::kMade},
    {.kind = CauseKind::kMediumRequests,
     .name = "medium_requests",
     .sentence = "Requests of 1 to 10 MiB each hold a whole segment of 20 MiB",
     .needs = CauseNeeds::kState,
     .detect = DetectMediumRequests,
     .fixes = {CauseFix::kApart, CauseFix::kExpandableHint}},
    {.kind = CauseKind::kSmallLargeSplit,
     .name = "small_large_split",
     .sentence = "Free memory lies in the pool for the other class of sizes",
     .needs = CauseNeeds::kState,
     .detect = DetectSmallLargeSplit,
     .fixes = {CauseFix::kApart, CauseFix::kExpandableHint}},
    {.kind = CauseKind::kStreamsDoNotShare,
     .name = "streams_do_not_share",
     .sentence = "Free memory lies with another stream, and streams do not share it",
     .needs = CauseNeeds::kEvents,
     .detect = DetectStreamsDoNotShare,
     .fixes = {CauseFix::kOneStream},
     .change = &changes::kAllocateOnOneStream,
     .holes = CauseHoles::kMade},
    {.kind = CauseKind::kPrivatePools,
     .name = "private_pools",
     .sentence = "Free memory lies in private pools (CUDA graphs, MemPool)",
     .needs = CauseNeeds::kAnything,
     .detect = DetectPrivatePools,
     .fixes = {CauseFix::kSharedPool},
     .holes = CauseHoles::kMade},
};

}  // namespace

absl::Span<const CauseSpec> HolesCauses() { return kHolesCauses; }

}  // namespace ashlar::analyses
