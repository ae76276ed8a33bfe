#include "commands/explain/explain_parts.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "allocator/base/units.h"
#include "allocator/core/oom_report.h"
#include "allocator/policy/size_rule.h"
#include "analyzer/analyses/causes/cause.h"
#include "analyzer/analyses/causes/leak_shapes.h"
#include "analyzer/analyses/state/live_stacks.h"
#include "analyzer/analyses/state/state_accounting.h"
#include "analyzer/whatif/fix_tests.h"

namespace ashlar::answers {
namespace {

constexpr std::size_t kMostStacks = 5;

std::string DescribeMoment(const timeline::Timeline& timeline, timeline::EventIndex moment) {
  if (timeline.event_count() == 0) return "the end of the recording (no events in this file)";
  if (!timeline.oom_events().empty()) return absl::StrCat("the out-of-memory error, event ", FormatCount(moment));
  if (moment == timeline::kBeforeWindow) return "the peak of allocated memory, at the start of the recorded window";
  return absl::StrCat("the peak of allocated memory, event ", FormatCount(moment));
}

void SetPeaks(const timeline::Timeline& timeline, Explanation& out) {
  out.peak.allocated_bytes = timeline.allocated_peak().bytes;
  out.peak.active_bytes = timeline.active_peak().bytes;
  out.peak.reserved_bytes = timeline.reserved_peak().bytes;
  if (timeline.reserved_peak().bytes > 0) {
    out.peak.utilisation =
        static_cast<double>(timeline.allocated_peak().bytes) / static_cast<double>(timeline.reserved_peak().bytes);
  }
}

void SetStacks(const timeline::State& state, const trace::StackTable* stacks, Explanation& out) {
  if (stacks == nullptr || stacks->stack_count() == 0) {
    out.sizes = analyses::LiveSizes(state, kMostStacks);
    return;
  }
  out.stacks = analyses::LiveLines(state, *stacks, kMostStacks);
}

void SetDevice(const TimelineContext& context, std::optional<std::uint64_t> free_bytes, Explanation& out) {
  OomAccounting& parts = out.accounting;
  parts.total_bytes = context.total_bytes;
  parts.outside_bytes = context.outside_bytes;
  parts.free_bytes = free_bytes;
  if (!parts.total_bytes.has_value()) return;
  const std::uint64_t reserved = *parts.reserved_bytes;
  if (free_bytes.has_value() && !parts.outside_bytes.has_value() && *parts.total_bytes >= reserved + *free_bytes) {
    parts.outside_bytes = *parts.total_bytes - reserved - *free_bytes;
  }
  if (!free_bytes.has_value() && parts.outside_bytes.has_value() &&
      *parts.total_bytes >= reserved + *parts.outside_bytes) {
    parts.free_bytes = *parts.total_bytes - reserved - *parts.outside_bytes;
  }
  if (*parts.total_bytes < reserved + parts.free_bytes.value_or(0)) {
    out.notes.push_back(
        {"capacity_too_small",
         absl::StrCat("the given capacity of ", FormatBytes(*parts.total_bytes),
                      free_bytes.has_value() ? " is below what was reserved and free; it is not used"
                                             : " is below what was reserved: this accounting leaves it out, and the "
                                               "replays below run in it"),
         1});
    parts.total_bytes.reset();
    parts.outside_bytes = context.outside_bytes;
    parts.free_bytes = free_bytes;
  }
}

// The least request that rounds to `rounded`.
std::uint64_t LeastRequest(std::uint64_t rounded, const policy::Options& options) {
  if (rounded > policy::kMaxRequestBytes) return rounded;  // no allocator made this
  std::uint64_t low = 1;
  std::uint64_t high = std::max<std::uint64_t>(rounded, 1);
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (policy::RoundedBytes(middle, options) >= rounded) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

OomVerdict VerdictOf(core::OomKind kind) {
  switch (kind) {
    case core::OomKind::kCapacity:
      return OomVerdict::kCapacity;
    case core::OomKind::kNearlyFull:
      return OomVerdict::kNearlyFull;
    case core::OomKind::kFragmentation:
      return OomVerdict::kFragmentation;
    case core::OomKind::kOutside:
      return OomVerdict::kOutside;
    case core::OomKind::kLimit:
      return OomVerdict::kLimit;
  }
  return OomVerdict::kUnknown;
}

// Judges the last out-of-memory error. With F free on the device, the allocator could hold reserved + F, so without any
// holes there would be reserved + F - live for the request.
void JudgeOom(const timeline::Timeline& timeline, const timeline::State& state, const TimelineContext& context,
              timeline::EventIndex moment, Explanation& out) {
  const trace::Event& event = timeline.events()[static_cast<std::size_t>(moment)];
  const std::uint64_t rounded = event.size_bytes;
  const std::uint64_t free_bytes = event.address;
  const std::uint64_t segment = policy::SegmentBytes(std::max<std::uint64_t>(rounded, 1), *context.options);
  out.tried_bytes = segment;
  out.request_interval = ByteSpan{Signed(LeastRequest(rounded, *context.options)), Signed(rounded), Signed(rounded)};
  const OomAccounting& parts = out.accounting;
  const core::OomFigures figures = {*parts.reserved_bytes,
                                    parts.live_bytes.value_or(*parts.allocated_bytes),
                                    free_bytes,
                                    parts.outside_bytes,
                                    rounded,
                                    segment};
  const core::OomJudgement judgement = core::JudgeOom(figures);
  const std::int64_t headroom = judgement.headroom_bytes;
  out.headroom = ByteSpan{headroom, headroom, headroom};
  const std::uint64_t largest =
      analyses::LargestFreeBytes(state, event.stream, policy::IsSmall(rounded), event.pool.value_or(PoolId{}));
  out.headline =
      absl::StrCat("OUT OF MEMORY  device ", timeline.device(), ", event ", FormatCount(moment), ": ",
                   FormatBytes(rounded), " requested, the largest free block it could use is ", FormatBytes(largest));
  out.verdict = VerdictOf(judgement.kind);
  for (std::string& sentence : core::OomSentences(judgement, figures)) {
    out.evidence.push_back(std::move(sentence));
  }
}

void JudgeWithoutOom(const timeline::Timeline& timeline, Explanation& out) {
  if (!timeline.HasAllocations()) {
    out.headline = absl::StrCat("NO ALLOCATIONS RECORDED  device ", timeline.device(), ": the file has a state, ",
                                "not how it came about");
    out.verdict = OomVerdict::kUnknown;
    out.evidence.push_back("unknown: whether a request failed is not in this trace");
    return;
  }
  out.headline = absl::StrCat("NO FAILURE  device ", timeline.device(), ": no request ran out of memory in ",
                              FormatCount(static_cast<std::uint64_t>(timeline.event_count())), " events");
  out.verdict = OomVerdict::kHealthy;
  out.evidence.push_back(absl::StrCat("healthy: peak allocated ", FormatBytes(timeline.allocated_peak().bytes), " of ",
                                      FormatBytes(timeline.reserved_peak().bytes), " peak reserved"));
}

}  // namespace

void ExplainTimeline(const timeline::Timeline& timeline, const TimelineContext& context,
                     const analyses::CauseHistory& history, Explanation& out) {
  const timeline::EventIndex moment = history.moment;
  const timeline::State& state = history.state;
  const bool has_oom = whatif::CapacityAtOom(timeline, *context.options).has_value();
  out.moment = DescribeMoment(timeline, moment);
  SetAccounting(analyses::AccountState(state), out);
  const std::optional<std::uint64_t> free_bytes =
      has_oom ? std::optional(timeline.events()[static_cast<std::size_t>(moment)].address) : std::nullopt;
  SetDevice(context, free_bytes, out);
  SetPeaks(timeline, out);
  SetStacks(state, context.stacks, out);
  out.pins = DescribePins(history.pins, history.steps, context.stacks);
  out.program = ViewProgram(history.steps, moment, context.stacks);
  if (has_oom) {
    out.failure = DescribeFailure(*history.failed, timeline, context.stacks);
    JudgeOom(timeline, state, context, moment, out);
  } else {
    JudgeWithoutOom(timeline, out);
  }
}

namespace {

constexpr std::size_t kMostLines = 3;

ExplainedCause Explained(whatif::TestedCause cause, const trace::StackTable* stacks) {
  ExplainedCause out;
  for (const trace::StackId stack : cause.finding.stacks) {
    if (stacks != nullptr && out.lines.size() < kMostLines) out.lines.push_back(analyses::StackLabel(*stacks, stack));
  }
  out.finding = std::move(cause.finding);
  out.fix = std::move(cause.fix);
  return out;
}

whatif::WhatIfSettings SettingsOf(const policy::Options& baseline, const ExplainOptions& options,
                                  const Explanation& explanation) {
  whatif::WhatIfSettings out;
  out.baseline = baseline;
  out.capacity_bytes = explanation.what_if_capacity_bytes;
  out.memory_fraction = options.replay.memory_fraction;
  out.device.address_order = options.replay.segment_addresses.value_or(device::AddressOrder::kAscending);
  return out;
}

// The other ranks were given; this process is the first.
std::vector<analyses::RankPeak> AllRanks(const timeline::Timeline& timeline, const ExplainOptions& options) {
  if (options.other_ranks.empty()) return {};
  std::vector<analyses::RankPeak> out = {{0, timeline.allocated_peak().bytes, timeline.reserved_peak().bytes}};
  out.insert(out.end(), options.other_ranks.begin(), options.other_ranks.end());
  return out;
}

absl::Status Add(analyses::CauseContext context, const whatif::RecordedRequests& requests,
                 const ExplainOptions& options, Explanation& out) {
  const analyses::CauseHistory& history = *context.history;
  context.device = {out.accounting.total_bytes, options.device_used_bytes, AllRanks(*history.timeline, options),
                    options.calls_fused_attention, options.shared_device};
  Tell(options.replay, "looking for causes");
  if (const std::optional<analyses::LeakGrowth> leak = analyses::LeakAt(context); leak.has_value()) {
    out.growing = GrowingBytes{leak->bytes, leak->bytes_per_step};
  }
  absl::StatusOr<std::vector<whatif::TestedCause>> tested =
      whatif::TestFixes(analyses::FindCauses(context), context, requests, SettingsOf(*history.options, options, out),
                        options.replay.progress);
  if (!tested.ok()) return tested.status();
  out.program_remedies = whatif::ProgramRemedies(*tested);
  for (whatif::TestedCause& cause : *tested) out.causes.push_back(Explained(std::move(cause), history.stacks));
  return absl::OkStatus();
}

}  // namespace

analyses::CauseContext CausesOf(const trace::Snapshot& snapshot, const ObservedRun& run) {
  analyses::CauseFacts facts;
  facts.options = &run.recorded.options;
  facts.stacks = &snapshot.stacks;
  if (snapshot.settings.has_value()) facts.settings = &*snapshot.settings;
  facts.annotations = snapshot.annotations;
  return analyses::ContextOf(run.timeline, facts);
}

analyses::CauseContext CausesOf(const ReplayedRun& run) {
  analyses::CauseFacts facts;
  facts.options = &run.options;
  return analyses::ContextOf(run.timeline, facts);
}

absl::Status AddCauses(analyses::CauseContext context, const ObservedRun& run, const ExplainOptions& options,
                       Explanation& out) {
  if (run.recorded.warm.fidelity.total == 0) return Add(std::move(context), {}, options, out);
  const std::shared_ptr<const trace::RequestTrace> without_retries =
      whatif::SharedWhatIfRequests(run.recorded.program, /*is_capacity_known=*/true);
  return Add(std::move(context), {without_retries.get(), &run.recorded.program.requests}, options, out);
}

absl::Status AddCauses(analyses::CauseContext context, const trace::RequestTrace& requests,
                       const ExplainOptions& options, Explanation& out) {
  return Add(std::move(context), {&requests, &requests}, options, out);
}

void AddCauses(const analyses::OomMessageVerdict& verdict, Explanation& out) {
  for (analyses::CauseFinding& finding : analyses::FindCauses({.message = verdict})) {
    out.causes.push_back({.finding = std::move(finding)});
  }
}

}  // namespace ashlar::answers
