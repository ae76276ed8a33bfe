#include "analyzer/answers/explain_causes.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "analyzer/analyses/causes/cause.h"
#include "analyzer/analyses/causes/leak_shapes.h"
#include "analyzer/analyses/state/live_stacks.h"
#include "analyzer/remedies/fix_tests.h"

namespace ashlar::answers {
namespace {

constexpr std::size_t kMostLines = 3;

ExplainedCause Explained(remedies::TestedCause cause, const trace::StackTable* stacks) {
  ExplainedCause out;
  for (const trace::StackId stack : cause.finding.stacks) {
    if (stacks != nullptr && out.lines.size() < kMostLines) out.lines.push_back(analyses::StackLabel(*stacks, stack));
  }
  out.finding = std::move(cause.finding);
  out.fix = std::move(cause.fix);
  return out;
}

remedies::WhatIfSettings SettingsOf(const policy::Options& baseline, const ExplainOptions& options,
                                    const Explanation& explanation) {
  remedies::WhatIfSettings out;
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

absl::Status Add(analyses::CauseContext context, const remedies::RecordedRequests& requests,
                 const ExplainOptions& options, Explanation& out) {
  const analyses::CauseHistory& history = *context.history;
  context.device = {out.accounting.total_bytes, options.device_used_bytes, AllRanks(*history.timeline, options),
                    options.calls_fused_attention};
  Tell(options.replay, "looking for causes");
  if (const std::optional<analyses::LeakGrowth> leak = analyses::LeakAt(context); leak.has_value()) {
    out.growing = GrowingBytes{leak->bytes, leak->bytes_per_step};
  }
  absl::StatusOr<std::vector<remedies::TestedCause>> tested =
      remedies::TestFixes(analyses::FindCauses(context), context, requests, SettingsOf(*history.options, options, out),
                          options.replay.progress);
  if (!tested.ok()) return tested.status();
  out.program_remedies = remedies::ProgramRemedies(*tested);
  for (remedies::TestedCause& cause : *tested) out.causes.push_back(Explained(std::move(cause), history.stacks));
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
      remedies::SharedWhatIfRequests(run.recorded.program, /*is_capacity_known=*/true);
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
