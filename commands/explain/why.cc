#include "commands/explain/why.h"

#include <utility>

#include "analyzer/analyses/state/live_stacks.h"

namespace ashlar::answers {
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

// Of an optimizer in its first step.
std::uint64_t BytesToCome(const std::vector<ExplainedCause>& causes) {
  for (const ExplainedCause& cause : causes) {
    if (cause.finding.finding == analyses::Finding::kFound &&
        cause.finding.kind == analyses::CauseKind::kOptimizerState) {
      return cause.finding.to_come_bytes;
    }
  }
  return 0;
}

}  // namespace

absl::StatusOr<Why> FindWhy(const analyses::CauseContext& context, const whatif::RecordedRequests& requests,
                            const whatif::WhatIfSettings& settings, const whatif::Progress& progress) {
  absl::StatusOr<std::vector<whatif::TestedCause>> tested =
      whatif::TestFixes(analyses::FindCauses(context), context, requests, settings, progress);
  if (!tested.ok()) return tested.status();
  Why out;
  out.remedies = whatif::ProgramRemedies(*tested);
  for (whatif::TestedCause& cause : *tested) {
    out.causes.push_back(Explained(std::move(cause), context.history->stacks));
  }
  out.to_come_bytes = BytesToCome(out.causes);
  return out;
}

Why WhyOfMessage(const analyses::OomMessageVerdict& message) {
  Why out;
  for (analyses::CauseFinding& finding : analyses::FindCauses({.message = message})) {
    out.causes.push_back({.finding = std::move(finding)});
  }
  return out;
}

}  // namespace ashlar::answers
