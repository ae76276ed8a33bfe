// Causes that lie in the allocator's settings.
#include <algorithm>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "analyzer/analyses/causes/cause_table.h"
#include "analyzer/analyses/causes/evidence.h"
#include "analyzer/analyses/state/state_accounting.h"

namespace ashlar::analyses {
namespace {

// Of what is allocated. A setting that rounds is a choice: it counts from less on than the rests that stay unsplit.
constexpr double kRoundingShare = 0.03;
constexpr double kUnsplitShare = 0.05;
// The gap from which on other settings are worth a thought.
constexpr double kGapShare = 0.1;

bool RoundsUp(const policy::Options& options) {
  return std::any_of(options.roundup_power2_divisions.begin(), options.roundup_power2_divisions.end(),
                     [](std::uint64_t divisions) { return divisions > 1; });
}

bool HasExpandableSegments(const CauseContext& context) {
  const auto segments = context.history->timeline->segments();
  return std::any_of(segments.begin(), segments.end(),
                     [](const timeline::SegmentSpan& segment) { return segment.is_expandable; });
}

// What was asked for: the conf string stands, whatever the platform made of it.
bool AskedForExpandable(const CauseContext& context) {
  const bool is_on = context.history->options != nullptr && context.history->options->expandable_segments;
  return is_on || (context.history->settings != nullptr &&
                   (context.history->settings->expandable_segments ||
                    absl::StrContains(context.history->settings->conf, "expandable_segments:True")));
}

// Whether pieces of the cache, put together as pages can be, would have served a request that obtained new memory.
bool PiecesWouldHaveServed(const CauseContext& context) {
  return std::any_of(context.history->growths.begin(), context.history->growths.end(), [](const TrafficGrowth& growth) {
    return growth.own.bytes >= growth.request_bytes && growth.own.largest < growth.request_bytes;
  });
}

CauseFinding DetectRounding(const CauseContext& context) {
  const CauseKind kind = CauseKind::kRounding;
  const core::Accounting parts = AccountState(context.history->state);
  if (!parts.rounding_bytes.has_value()) {
    return NotInTrace(kind, "what was requested would tell: PyTorch records it from 2.1 on");
  }
  const std::uint64_t bytes = *parts.rounding_bytes;
  const bool rounds_up = context.history->options != nullptr && RoundsUp(*context.history->options);
  const double least_share = rounds_up ? kRoundingShare : kUnsplitShare;
  const std::string share = absl::StrCat("blocks span ", FormatBytes(bytes), " more than was requested, ",
                                         ShareText(bytes, parts.allocated_bytes), " of what is allocated");
  if (bytes < kLeastMaterialBytes ||
      static_cast<double>(bytes) < least_share * static_cast<double>(parts.allocated_bytes)) {
    return Absent(kind, share);
  }
  CauseFinding out = Found(kind, Confidence::kLikely, bytes);
  out.evidence.push_back(share);
  if (rounds_up) {
    out.evidence.push_back("roundup_power2_divisions is set: requests are rounded up to a part of a power of two");
  } else {
    out.evidence.push_back("roundup_power2_divisions is not set: it is rests of up to 1 MiB that are not split off");
  }
  return out;
}

CauseFinding DetectMaxSplitSize(const CauseContext& context) {
  const CauseKind kind = CauseKind::kMaxSplitSize;
  if (context.history->options == nullptr) return NotInTrace(kind, "the allocator's settings would tell");
  const std::uint64_t limit = context.history->options->max_split_size_bytes;
  if (limit == policy::kUnlimited) return Absent(kind, "max_split_size_mb is not set");
  std::uint64_t refused = 0;
  std::uint64_t obtained = 0;
  const TrafficGrowth* first = nullptr;
  for (const TrafficGrowth& growth : context.history->growths) {
    if (!growth.pool.IsDefault() || growth.is_small_pool || growth.own.largest < growth.request_bytes) continue;
    if (first == nullptr) first = &growth;
    ++refused;
    obtained += growth.bytes;
  }
  const std::string sentence = absl::StrCat(FormatCount(refused), " requests found a free block that was large enough ",
                                            "and could not have it for the split limit of ", FormatBytes(limit));
  const std::uint64_t bytes = std::min(obtained, SparableBytes(context));
  if (refused == 0 || !IsMaterial(context, bytes)) return Absent(kind, sentence);
  CauseFinding out = Found(kind, Confidence::kLikely, bytes);
  out.evidence.push_back(absl::StrCat(sentence, "; ", FormatBytes(obtained), " were obtained instead"));
  out.evidence.push_back(absl::StrCat("the first: event ", FormatCount(static_cast<std::uint64_t>(first->event)), ", ",
                                      FormatBytes(first->request_bytes), " with a free block of ",
                                      FormatBytes(first->own.largest), " at hand"));
  return out;
}

CauseFinding DetectNotExpandable(const CauseContext& context) {
  const CauseKind kind = CauseKind::kNotExpandable;
  const bool is_asked = AskedForExpandable(context);
  if (is_asked && HasExpandableSegments(context)) return Absent(kind, "expandable segments are in use");
  const std::uint64_t gap = SparableBytes(context);
  const std::uint64_t reserved = context.history->timeline->reserved_peak().bytes;
  const std::string unused =
      absl::StrCat(FormatBytes(gap), " of ", FormatBytes(reserved), " peak reserved were never in use at once");
  const bool is_wide = static_cast<double>(gap) >= kGapShare * static_cast<double>(reserved);
  if (!IsMaterial(context, gap) || !is_wide || !PiecesWouldHaveServed(context)) {
    CauseFinding out = Absent(kind, unused);
    if (is_asked)
      out.counter_evidence.push_back("expandable_segments:True was asked for, yet no segment is expandable");
    return out;
  }
  CauseFinding out = Found(kind, is_asked ? Confidence::kLikely : Confidence::kPossible, gap);
  out.evidence.push_back(is_asked ? "expandable_segments:True was asked for, yet no segment is expandable"
                                  : "expandable_segments is off");
  out.evidence.push_back(unused);
  return out;
}

constexpr CauseSpec kSettingsCauses[] = {
    {.kind = CauseKind::kRounding,
     .name = "rounding",
     .sentence = "Rounding and unsplit rests take memory that nobody asked for",
     .needs = CauseNeeds::kState,
     .detect = DetectRounding,
     .fixes = {CauseFix::kUnrounded, CauseFix::kExpandable}},
    {.kind = CauseKind::kMaxSplitSize,
     .name = "max_split_size",
     .sentence = "max_split_size_mb keeps free memory from being used",
     .needs = CauseNeeds::kEvents,
     .detect = DetectMaxSplitSize,
     .fixes = {CauseFix::kUnlimitedSplit},
     .holes = CauseHoles::kMade},
    {.kind = CauseKind::kNotExpandable,
     .name = "not_expandable",
     .sentence = "Expandable segments are not in use, and would not have these holes",
     .needs = CauseNeeds::kEvents,
     .detect = DetectNotExpandable,
     .fixes = {CauseFix::kExpandable},
     .holes = CauseHoles::kSeen},
};

}  // namespace

absl::Span<const CauseSpec> SettingsCauses() { return kSettingsCauses; }

}  // namespace ashlar::analyses
