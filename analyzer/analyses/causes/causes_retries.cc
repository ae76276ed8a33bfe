// Causes of what is done about a full device: a cache that the allocator returns and obtains again, attempts that hold
// what failed ones had, and a cache that the program returns in every step.
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

constexpr std::uint64_t kLeastRetries = 3;

// Releases on the way to new memory, with the device as full as it ever was: the allocator's own retries.
struct Retries {
  std::uint64_t count = 0, released_bytes = 0, most_bytes = 0;
  std::int64_t time_us = 0;    // from the first release to the new memory, summed; 0 where the trace has no time
  std::uint64_t needless = 0;  // of the same look, where a returned piece would have served: the program asked for it
};

Retries FindRetries(const timeline::Timeline& timeline, const policy::Options& options) {
  Retries out;
  const auto events = timeline.events();
  const std::uint64_t full = timeline.reserved_peak().bytes;
  for (const ReturnBurst& burst : FindReturnBursts(timeline, options)) {
    const auto begin = static_cast<std::size_t>(burst.begin);
    const auto end = static_cast<std::size_t>(burst.end);
    if (end >= events.size() || !IsObtained(events[end])) continue;
    if (timeline.TotalsAfter(burst.begin - 1).reserved_bytes + events[end].size_bytes < full) continue;
    if (!burst.is_retry) {
      ++out.needless;
      continue;
    }
    ++out.count;
    out.released_bytes += burst.bytes;
    out.most_bytes = std::max(out.most_bytes, burst.bytes);
    if (events[begin].time_us != trace::kNoTime) out.time_us += events[end].time_us - events[begin].time_us;
  }
  return out;
}

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

CauseFinding DetectRetryStorm(const CauseContext& context) {
  const CauseKind kind = CauseKind::kRetryStorm;
  const Retries retries = FindRetries(*context.history->timeline, OptionsOf(context));
  const std::string sentence =
      absl::StrCat(FormatCount(retries.count), " times the full device was relieved by returning the cache, ",
                   FormatBytes(retries.released_bytes), " in all, on the way to new memory");
  if (retries.count < kLeastRetries || !IsMaterial(context, retries.most_bytes)) {
    CauseFinding out = Absent(kind, sentence);
    if (retries.needless > 0) {
      out.counter_evidence.push_back(absl::StrCat(
          FormatCount(retries.needless), " times the cache was returned though a piece of it would have served"));
    }
    return out;
  }
  CauseFinding out = Found(kind, Confidence::kLikely, retries.most_bytes);
  out.evidence.push_back(sentence);
  if (retries.time_us > 0) {
    out.evidence.push_back(absl::StrCat("from release to new memory they took ",
                                        FormatCount(static_cast<std::uint64_t>(retries.time_us)), " us together"));
  }
  return out;
}

}  // namespace ashlar::analyses
