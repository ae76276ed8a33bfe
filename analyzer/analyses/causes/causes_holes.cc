// Causes that lie in holes: free memory of segments that still hold a block in use.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "allocator/policy/size_rule.h"
#include "analyzer/analyses/causes/cause_table.h"
#include "analyzer/analyses/causes/evidence.h"
#include "analyzer/analyses/state/active_blocks.h"

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

}  // namespace

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

}  // namespace ashlar::analyses
