// Causes of what a program does about a full device: attempts that hold what failed ones had, and a cache that is
// returned in every step.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "analyzer/analyses/causes/cause_table.h"
#include "analyzer/analyses/causes/evidence.h"
#include "analyzer/analyses/causes/failed_attempts.h"
#include "analyzer/analyses/causes/return_bursts.h"
#include "analyzer/analyses/steps/iterations.h"

namespace ashlar::analyses {
namespace {

constexpr std::size_t kLeastBursts = 3;
constexpr double kLeastRegained = 0.5;  // of what a burst returned, obtained again before the next one
constexpr double kLeastPerRound = 0.5;  // bursts for each iteration
// Of the peak: a cause that frees so much comes before one that costs time alone.
constexpr double kLeastFreed = 0.1;

}  // namespace

CauseFinding DetectExceptionHoldsFrames(const CauseContext& context) {
  constexpr CauseKind kKind = CauseKind::kExceptionHoldsFrames;
  const timeline::Timeline& timeline = *context.history->timeline;
  std::vector<LiveBlock> held;
  for (const std::size_t index :
       BlocksOfFailedAttempts(timeline, context.history->moment, context.history->stacks, context.history->steps)) {
    held.push_back({&timeline.blocks()[index], {}});
  }
  const std::uint64_t bytes = BytesOf(held);
  if (timeline.oom_events().size() < 2) return Absent(kKind, "fewer than two requests fail");
  if (held.empty() || !IsMaterial(context, bytes)) {
    return Absent(kKind, absl::StrCat("of earlier failed attempts ", FormatBytes(bytes), " are alive"));
  }
  CauseFinding out = Found(kKind, Confidence::kProven, bytes);
  out.stacks = StacksOf(held);
  out.evidence.push_back(absl::StrCat(FormatBytes(bytes), " in ", held.size(),
                                      " blocks are of earlier attempts that failed, and still alive in the last one; ",
                                      MostFrom(context, held)));
  out.evidence.push_back(absl::StrCat(timeline.oom_events().size(), " requests failed in this window"));
  return out;
}

CauseFinding DetectEmptyCacheEachStep(const CauseContext& context) {
  constexpr CauseKind kKind = CauseKind::kEmptyCacheEachStep;
  const timeline::Timeline& timeline = *context.history->timeline;
  const Iterations iterations(timeline, context.history->stacks, context.history->steps.steps);
  std::vector<ReturnBurst> needless;
  std::uint64_t calls = 0;
  std::uint64_t bytes = 0;
  for (const ReturnBurst& burst : FindReturnBursts(timeline, OptionsOf(context))) {
    const bool is_regained =
        static_cast<double>(burst.regained_bytes) >= kLeastRegained * static_cast<double>(burst.bytes);
    if (burst.is_retry || !is_regained) continue;
    needless.push_back(burst);
    calls += burst.calls + burst.regained_calls;
    bytes += burst.bytes;
  }
  const std::size_t rounds =
      needless.empty() ? 0 : iterations.At(needless.back().begin) - iterations.At(needless.front().begin) + 1;
  const bool is_each =
      rounds >= kLeastBursts && static_cast<double>(needless.size()) >= kLeastPerRound * static_cast<double>(rounds);
  if (needless.size() < kLeastBursts || !is_each || bytes / needless.size() < kLeastMaterialBytes) {
    return Absent(kKind,
                  absl::StrCat(needless.size(), " times the cache was returned without need and obtained again"));
  }
  CauseFinding out = Found(kKind, Confidence::kLikely, bytes / needless.size());
  out.yields_to_bytes = static_cast<std::uint64_t>(kLeastFreed * static_cast<double>(timeline.reserved_peak().bytes));
  out.evidence.push_back(absl::StrCat(needless.size(), " times in ", rounds,
                                      " iterations the cache was returned, though ",
                                      "its pieces would have served what came next, and obtained again: ", calls,
                                      " calls of the driver, ", FormatBytes(bytes / needless.size()), " each time"));
  return out;
}

}  // namespace ashlar::analyses
