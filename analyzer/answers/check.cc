#include "analyzer/answers/check.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "analyzer/analyses/state/live_stacks.h"
#include "analyzer/analyses/steps/steps.h"

namespace ashlar::answers {
namespace {

constexpr std::size_t kLeastSteps = 2;
constexpr char kOneState[] = "the file has one state, not how it came about";
constexpr char kNoCapacity[] =
    "a request trace does not say how much memory the device has: give --capacity, such as 16GiB";

// Exactly measured.
void Decide(bool holds, double measured, std::string reason, CheckRow& row) {
  row.measured = measured;
  row.verdict = holds ? CheckVerdict::kHolds : CheckVerdict::kBroken;
  if (!holds) row.reason = std::move(reason);
}

CheckRow CheckReserved(const TracedRun& run, std::uint64_t limit) {
  CheckRow row{"max-reserved", CheckUnit::kBytes, static_cast<double>(limit)};
  const timeline::Peak& peak = run.timeline.reserved_peak();
  if (!run.has_events && peak.bytes <= limit) {
    row.reason = absl::StrCat("not in this trace: ", kOneState);
    return row;
  }
  const std::string when = peak.event == timeline::kBeforeWindow
                               ? "the start of the recorded window"
                               : absl::StrCat("event ", FormatCount(static_cast<std::uint64_t>(peak.event)));
  Decide(peak.bytes <= limit, static_cast<double>(peak.bytes),
         absl::StrCat("over by ", FormatBytes(peak.bytes - std::min(peak.bytes, limit)), " at ", when), row);
  return row;
}

CheckRow CheckUtilisation(const TracedRun& run, double limit) {
  CheckRow row{"min-utilisation", CheckUnit::kShare, limit};
  const std::uint64_t allocated = run.timeline.allocated_peak().bytes;
  const std::uint64_t reserved = run.timeline.reserved_peak().bytes;
  if (!run.has_events || reserved == 0) {
    row.reason = absl::StrCat("not in this trace: ", run.has_events ? "nothing was ever reserved" : kOneState);
    return row;
  }
  const double measured = static_cast<double>(allocated) / static_cast<double>(reserved);
  Decide(measured >= limit, measured,
         absl::StrCat("peak allocated ", FormatBytes(allocated), " of peak reserved ", FormatBytes(reserved)), row);
  return row;
}

CheckRow CheckRetries(const TracedRun& run, std::uint64_t limit) {
  CheckRow row{"max-retries", CheckUnit::kCount, static_cast<double>(limit)};
  if (!run.retries.has_value()) {
    row.reason = absl::StrCat("not in this trace: ", run.can_fail ? kOneState : kNoCapacity);
    return row;
  }
  const auto [least, most] = *run.retries;
  if (least <= limit && limit < most) {
    row.reason = absl::StrCat("not in this trace: between ", FormatCount(least), " and ", FormatCount(most),
                              "; whether segments were returned by a retry or by empty_cache is not recorded");
    return row;
  }
  Decide(most <= limit, static_cast<double>(most <= limit ? most : least),
         absl::StrCat(least == most ? "" : "at least ", FormatCount(least), " retries"), row);
  return row;
}

CheckRow CheckLeak(const TracedRun& run, std::uint64_t limit) {
  CheckRow row{"max-leak-per-step", CheckUnit::kBytes, static_cast<double>(limit)};
  const analyses::Steps steps = analyses::FindSteps(run.timeline, &run.stacks, run.annotations);
  if (steps.steps.size() < kLeastSteps) {
    row.reason = absl::StrCat("not in this trace: ", steps.steps.size(),
                              " whole steps were found, which is too few to tell a leak");
    return row;
  }
  std::uint64_t leaked = 0;
  for (const analyses::Leak& leak : steps.leaks) leaked += leak.bytes_per_step;
  std::string reason;
  if (!steps.leaks.empty()) {
    const analyses::Leak& most = steps.leaks.front();
    reason = absl::StrCat("over ", FormatCount(steps.steps.size()), " steps; most, ", FormatBytes(most.bytes_per_step),
                          ", by ", analyses::StackLabel(run.stacks, most.stack));
  }
  Decide(leaked <= limit, static_cast<double>(leaked), std::move(reason), row);
  return row;
}

CheckRow CheckOoms(const TracedRun& run, std::uint64_t limit) {
  CheckRow row{"max-ooms", CheckUnit::kCount, static_cast<double>(limit)};
  if (!run.has_events || !run.can_fail) {
    row.reason = absl::StrCat("not in this trace: ", run.can_fail ? kOneState : kNoCapacity);
    return row;
  }
  const auto ooms = run.timeline.oom_events();
  Decide(ooms.size() <= limit, static_cast<double>(ooms.size()),
         ooms.empty() ? "" : absl::StrCat("the last at event ", FormatCount(static_cast<std::uint64_t>(ooms.back()))),
         row);
  return row;
}

}  // namespace

std::uint64_t CheckAnswer::CountOf(CheckVerdict verdict) const {
  return static_cast<std::uint64_t>(
      std::count_if(rows.begin(), rows.end(), [verdict](const CheckRow& row) { return row.verdict == verdict; }));
}

CheckAnswer CheckTrace(std::string input, const TracedRun& run, const CheckLimits& limits) {
  CheckAnswer out{std::move(input), run.source, {}};
  if (limits.max_reserved_bytes) out.rows.push_back(CheckReserved(run, *limits.max_reserved_bytes));
  if (limits.min_utilisation) out.rows.push_back(CheckUtilisation(run, *limits.min_utilisation));
  if (limits.max_retries) out.rows.push_back(CheckRetries(run, *limits.max_retries));
  if (limits.max_leak_bytes_per_step) out.rows.push_back(CheckLeak(run, *limits.max_leak_bytes_per_step));
  if (limits.max_ooms) out.rows.push_back(CheckOoms(run, *limits.max_ooms));
  return out;
}

CheckAnswer CheckDevices(std::string input, const std::vector<TracedRun>& runs, const CheckLimits& limits) {
  CheckAnswer out{std::move(input), "", {}};
  for (const TracedRun& run : runs) {
    CheckAnswer one = CheckTrace("", run, limits);
    absl::StrAppend(&out.source, out.source.empty() ? "" : "; ", one.source);
    for (CheckRow& row : one.rows) {
      if (runs.size() > 1) row.device = run.device;
      out.rows.push_back(std::move(row));
    }
  }
  return out;
}

}  // namespace ashlar::answers
