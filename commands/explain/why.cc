#include "commands/explain/why.h"

#include <utility>

#include "analyzer/analyses/state/live_stacks.h"

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

}  // namespace

std::uint64_t Why::BytesToCome() const {
  for (const ExplainedCause& cause : causes) {
    if (cause.finding.finding == analyses::Finding::kFound && cause.finding.to_come_bytes > 0) {
      return cause.finding.to_come_bytes;
    }
  }
  return 0;
}

absl::StatusOr<Why> FindWhy(const analyses::CauseContext& context, const remedies::RecordedRequests& requests,
                            const remedies::WhatIfSettings& settings, const remedies::Progress& progress) {
  absl::StatusOr<std::vector<remedies::TestedCause>> tested =
      remedies::TestFixes(analyses::FindCauses(context), context, requests, settings, progress);
  if (!tested.ok()) return tested.status();
  Why out;
  out.remedies = remedies::ProgramRemedies(*tested);
  for (remedies::TestedCause& cause : *tested) {
    out.causes.push_back(Explained(std::move(cause), context.history->stacks));
  }
  return out;
}

Why FindWhy(const analyses::OomMessageVerdict& message) {
  Why out;
  for (analyses::CauseFinding& finding : analyses::FindCauses({.message = message})) {
    out.causes.push_back({.finding = std::move(finding)});
  }
  return out;
}

}  // namespace ashlar::answers
