#include "commands/fleet/fleet_rank.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "allocator/base/units.h"
#include "analyzer/analyses/causes/cause.h"
#include "analyzer/analyses/state/live_stacks.h"
#include "analyzer/whatif/settings_space.h"
#include "commands/explain/explain.h"
#include "commands/fleet/fleet.h"
#include "commands/shared/traced_run.h"
#include "commands/sweep/sweep.h"

namespace ashlar::answers {
namespace {

constexpr std::size_t kMostRankCauses = 6;

constexpr absl::string_view kNoStackLine = "no stack recorded";  // as StackLabel calls it

// A label that names no line is none.
std::string KnownLine(const std::string& label) { return label == kNoStackLine ? "" : label; }

std::vector<RankCause> CausesIn(const Explanation& explanation) {
  std::vector<RankCause> out;
  for (const ExplainedCause& cause : explanation.causes) {
    const analyses::CauseFinding& finding = cause.finding;
    if (finding.finding != analyses::Finding::kFound || finding.is_footnote || out.size() == kMostRankCauses) continue;
    out.push_back({.name = std::string(analyses::CauseName(finding.kind)),
                   .sentence = std::string(analyses::CauseSentence(finding.kind)),
                   .confidence = std::string(analyses::ConfidenceName(finding.confidence)),
                   .bytes = finding.bytes,
                   .is_sickness = finding.is_sickness,
                   .line = cause.lines.empty() ? "" : KnownLine(cause.lines.front())});
  }
  return out;
}

std::optional<std::uint64_t> FailedRequestOf(const Explanation& explanation) {
  if (explanation.request_bytes.has_value()) return explanation.request_bytes;
  if (!explanation.request_interval.has_value()) return std::nullopt;
  return static_cast<std::uint64_t>(explanation.request_interval->high_bytes);
}

constexpr std::size_t kLeastGrowthSteps = 8;
constexpr double kLeastGrowthShare = 0.01;   // of the peak of allocated memory, from the first steps to the last
constexpr std::uint64_t kQuarterOfRise = 8;  // each quarter of the steps lies at least this part of it higher

// Of each step the bytes that were there before it began and are there when it has ended: not what it works on.
std::vector<std::uint64_t> FloorsOf(const timeline::Timeline& timeline,
                                    const std::vector<analyses::EventRange>& steps) {
  std::vector<std::int64_t> change(steps.size() + 1);
  for (const timeline::BlockSpan& block : timeline.blocks()) {
    const auto first = std::upper_bound(
        steps.begin(), steps.end(), block.alloc_event,
        [](timeline::EventIndex event, const analyses::EventRange& step) { return event < step.begin; });
    const auto end = std::lower_bound(
        first, steps.end(), block.free_requested_event,
        [](const analyses::EventRange& step, timeline::EventIndex event) { return step.end <= event; });
    change[static_cast<std::size_t>(first - steps.begin())] += Signed(block.size_bytes);
    change[static_cast<std::size_t>(end - steps.begin())] -= Signed(block.size_bytes);
  }
  std::vector<std::uint64_t> out;
  std::int64_t bytes = 0;
  for (std::size_t step = 0; step < steps.size(); ++step) {
    bytes += change[step];
    out.push_back(static_cast<std::uint64_t>(bytes));
  }
  return out;
}

// The line of the program that made most of what such steps kept; empty where no stacks say.
std::string LineOfKept(const TracedRun& run, const std::vector<analyses::EventRange>& steps) {
  std::map<std::string, std::uint64_t> lines;
  for (const timeline::BlockSpan& block : run.timeline.blocks()) {
    const bool is_kept = block.alloc_event >= steps[1].begin && block.alloc_event < steps.back().begin &&
                         block.free_requested_event >= steps.back().end;
    if (is_kept && block.stack != trace::kNoStack) {
      lines[analyses::StackLabel(run.stacks, block.stack)] += block.size_bytes;
    }
  }
  const auto less = [](const auto& a, const auto& b) { return a.second < b.second; };
  const auto most = std::max_element(lines.begin(), lines.end(), less);
  return most == lines.end() ? "" : KnownLine(most->first);
}

// By the floors, where they rise all the way and not once: what is kept of each step shows there without any stacks,
// also where steps differ in their lengths. A quarter's floor is its median.
std::optional<RankGrowth> RisingFloor(const TracedRun& run, const std::vector<analyses::EventRange>& steps) {
  std::vector<std::uint64_t> floors = FloorsOf(run.timeline, steps);
  if (floors.size() < kLeastGrowthSteps + 1) return std::nullopt;
  floors.erase(floors.begin());  // what the first step makes for good, such as an optimizer's state, is no growth
  const std::size_t quarter = floors.size() / 4;
  std::vector<std::uint64_t> medians;
  for (std::size_t i = 0; i < 4; ++i) {
    const auto begin = floors.end() - static_cast<std::ptrdiff_t>((4 - i) * quarter);
    medians.push_back(MedianOf({begin, begin + static_cast<std::ptrdiff_t>(quarter)}));
  }
  if (medians.back() <= medians.front()) return std::nullopt;
  const std::uint64_t rise = medians.back() - medians.front();
  const auto peak = static_cast<double>(run.timeline.allocated_peak().bytes);
  if (static_cast<double>(rise) < kLeastGrowthShare * peak) return std::nullopt;
  for (std::size_t i = 1; i < medians.size(); ++i) {
    if (medians[i] < medians[i - 1] + rise / kQuarterOfRise) return std::nullopt;
  }
  return RankGrowth{rise / (3 * quarter), rise, LineOfKept(run, steps)};
}

std::optional<RankGrowth> GrowthOf(const Explanation& explanation, const TracedRun* run) {
  const std::vector<LeakLine>& leaks = explanation.program.leaks;
  const std::string line = leaks.empty() ? "" : KnownLine(leaks.front().label);
  if (explanation.growing.has_value()) {
    return RankGrowth{explanation.growing->bytes_per_step, explanation.growing->bytes, line};
  }
  if (leaks.empty()) {
    return run == nullptr ? std::nullopt : RisingFloor(*run, explanation.program.steps.steps);
  }
  RankGrowth out{0, 0, line};
  for (const LeakLine& leak : leaks) {
    out.bytes_per_step += leak.bytes_per_step;
    out.bytes += leak.bytes;
  }
  return out;
}

void SetRankFigures(const Explanation& explanation, const TracedRun* run, RankSummary& out) {
  out.source = explanation.source;
  out.headline = explanation.headline;
  out.peak_allocated_bytes = explanation.peak.allocated_bytes;
  out.peak_reserved_bytes = explanation.peak.reserved_bytes;
  out.stranded_bytes = explanation.accounting.stranded_bytes;
  out.total_bytes = explanation.accounting.total_bytes;
  out.causes = CausesIn(explanation);
  out.growth = GrowthOf(explanation, run);
  out.steps = explanation.program.steps.steps.size();
  if (explanation.fidelity.has_value()) {
    out.addresses_matched = explanation.fidelity->matched;
    out.addresses_total = explanation.fidelity->total;
    out.is_exact = explanation.fidelity->IsExact();
  }
}

// A file may say anything: what lies outside has no sums.
constexpr std::int64_t kFarthestTime = std::int64_t{1} << 60;

bool HasTimes(const timeline::Timeline& timeline) {
  const auto has_time = [](const trace::Event& event) {
    return event.time_us > -kFarthestTime && event.time_us < kFarthestTime;
  };
  return std::all_of(timeline.events().begin(), timeline.events().end(), has_time);
}

void SetRankFailure(const Explanation& explanation, const timeline::Timeline& timeline, RankSummary& out) {
  if (timeline.oom_events().empty()) return;
  const trace::Event& event = timeline.events()[static_cast<std::size_t>(timeline.oom_events().back())];
  RankFailure failure{std::nullopt, FailedRequestOf(explanation),
                      std::string(analyses::VerdictName(explanation.verdict))};
  if (HasTimes(timeline)) failure.time_us = event.time_us;
  out.failure = std::move(failure);
}

class CurveMaker {
 public:
  explicit CurveMaker(const timeline::Timeline& timeline) : timeline_(timeline) {
    out_.is_time = HasTimes(timeline);
    const auto [first, last] =
        std::minmax_element(timeline.events().begin(), timeline.events().end(),
                            [](const trace::Event& a, const trace::Event& b) { return a.time_us < b.time_us; });
    out_.begin = out_.is_time ? first->time_us : 0;
    out_.end = out_.is_time ? last->time_us + 1 : timeline.event_count();
  }

  // A bin has what held when it began as well.
  RankCurve Make() {
    timeline::Totals now = timeline_.TotalsAfter(timeline::kBeforeWindow);
    std::size_t bin = 0;
    OpenBin(now);
    for (timeline::EventIndex event = 0; event < timeline_.event_count(); ++event) {
      for (const std::size_t at = BinOf(event); bin < at; ++bin) OpenBin(now);
      now = timeline_.TotalsAfter(event);
      out_.allocated_bytes.back() = std::max(out_.allocated_bytes.back(), now.allocated_bytes);
      out_.reserved_bytes.back() = std::max(out_.reserved_bytes.back(), now.reserved_bytes);
    }
    while (out_.allocated_bytes.size() < kFleetBins) OpenBin(now);
    return std::move(out_);
  }

 private:
  void OpenBin(const timeline::Totals& now) {
    out_.allocated_bytes.push_back(now.allocated_bytes);
    out_.reserved_bytes.push_back(now.reserved_bytes);
  }

  // Of two events out of order in time the later one counts where the earlier does.
  std::size_t BinOf(timeline::EventIndex event) const {
    const std::int64_t at =
        out_.is_time ? timeline_.events()[static_cast<std::size_t>(event)].time_us - out_.begin : event;
    const std::int64_t width = out_.end - out_.begin;
    return static_cast<std::size_t>(static_cast<double>(at) / static_cast<double>(width) * double{kFleetBins});
  }

  const timeline::Timeline& timeline_;
  RankCurve out_;
};

// The rows of the confs asked for, each as the rank's version reads it; one that it cannot read has none.
std::vector<RankRow> RowsOf(const std::vector<whatif::WhatIfRow>& replayed, const std::vector<std::string>& confs,
                            const policy::Options& baseline, const std::string& carried) {
  std::vector<RankRow> out;
  const auto recorded = std::find_if(replayed.begin(), replayed.end(), std::mem_fn(&whatif::WhatIfRow::is_baseline));
  if (recorded == replayed.end()) return out;
  out.push_back({recorded->conf, true, *recorded});
  for (const std::string& conf : confs) {
    const std::string whole = whatif::JoinConfs(conf, carried);
    const absl::StatusOr<policy::Options> options = policy::ParseConf(whole, baseline.compat, policy::Keys::kAshlar);
    if (!options.ok()) continue;
    const auto same = [&whole](const whatif::WhatIfRow& row) { return !row.is_baseline && row.conf == whole; };
    const auto found = std::find_if(replayed.begin(), replayed.end(), same);
    const bool is_recorded = found == replayed.end();
    out.push_back({conf, is_recorded, is_recorded ? *recorded : *found});
    out.back().row.is_baseline = false;
  }
  return out;
}

// Replays what the explanation has not replayed: settings that were given, of those the ones that the rank's version
// knows. Where it knows none, the recorded settings alone.
absl::StatusOr<std::vector<whatif::WhatIfRow>> ReplayConfs(const Input& input, const RankOptions& options,
                                                           policy::Compat compat, const std::string& carried) {
  absl::StatusOr<WhatIfInput> replayed = SweepInputOf("", input, options.replay);
  if (!replayed.ok()) return replayed.status();
  SweepOptions sweep{.threads = 1};
  for (const std::string& conf : options.confs) {
    const std::string whole = whatif::JoinConfs(conf, carried);
    if (policy::ParseConf(whole, compat, policy::Keys::kAshlar).ok()) sweep.confs.push_back(whole);
  }
  if (sweep.confs.empty()) sweep.confs.push_back(carried);  // none at all would be a search
  const absl::StatusOr<whatif::SweepResult> result = whatif::RunSweep({&*replayed, 1}, sweep);
  if (!result.ok()) return result.status();
  std::vector<whatif::WhatIfRow> out;
  for (const whatif::SweepRow& row : result->rows) out.push_back(row.traces.front());
  return out;
}

absl::Status SetRows(const Input& input, const TracedRun& run, const Explanation& explanation,
                     const RankOptions& options, RankSummary& out) {
  if (explanation.what_if.empty()) return absl::OkStatus();
  out.compat = std::string(policy::CompatName(run.options.compat));
  out.carried = whatif::CarriedConf(run.options.conf);
  absl::StatusOr<std::vector<whatif::WhatIfRow>> replayed = explanation.what_if;
  if (!options.confs.empty()) replayed = ReplayConfs(input, options, run.options.compat, out.carried);
  if (!replayed.ok()) return replayed.status();
  out.rows =
      RowsOf(*replayed, options.confs.empty() ? whatif::StandardConfs() : options.confs, run.options, out.carried);
  if (!out.rows.empty()) out.conf = out.rows.front().conf;
  return absl::OkStatus();
}

absl::StatusOr<RankSummary> SummarizeTrace(const Input& input, const Explanation& explanation,
                                           const RankOptions& options) {
  const absl::StatusOr<TracedRun> run = TraceInput(input, options.replay);
  if (!run.ok()) return run.status();
  RankSummary out;
  SetRankFigures(explanation, &*run, out);
  out.device = run->device;
  out.unread = run->options.notes;
  out.events = static_cast<std::uint64_t>(run->timeline.event_count());
  SetRankFailure(explanation, run->timeline, out);
  if (out.events > 0) out.curve = CurveMaker(run->timeline).Make();
  if (absl::Status status = SetRows(input, *run, explanation, options, out); !status.ok()) return status;
  return out;
}

RankSummary SummarizeMessage(const Explanation& explanation, const formats::OomMessage& message) {
  RankSummary out;
  SetRankFigures(explanation, nullptr, out);
  out.device = message.device;
  out.failure =
      RankFailure{std::nullopt, FailedRequestOf(explanation), std::string(analyses::VerdictName(explanation.verdict))};
  return out;
}

}  // namespace

absl::StatusOr<RankSummary> SummarizeRank(const Input& input, const RankOptions& options) {
  const absl::StatusOr<std::vector<Explanation>> explanations = Explain(input, {.replay = options.replay});
  if (!explanations.ok()) return explanations.status();
  if (input.messages() != nullptr) return SummarizeMessage(explanations->front(), input.messages()->front());
  return SummarizeTrace(input, explanations->front(), options);
}

}  // namespace ashlar::answers
