#include "analyzer/remedies/projection.h"

#include <cstddef>
#include <memory>
#include <vector>

#include "analyzer/analyses/steps/steps.h"
#include "analyzer/remedies/what_if_input.h"

namespace ashlar::remedies {
namespace {

// What was recorded of the requests of WhatIfRequests, in their order.
struct Asked {
  std::vector<trace::StackId> stacks;
  std::vector<timeline::EventIndex> events;
  std::vector<std::size_t> failures;
};

Asked AskedOf(const replay::SnapshotProgram& program, const timeline::Timeline& observed) {
  Asked out;
  for (std::size_t i = 0; i < program.answers.size(); ++i) {
    const replay::RecordedAnswer& answer = program.answers[i];
    if (answer.release == replay::Release::kMaybeLadder) continue;
    if (answer.is_oom) out.failures.push_back(out.events.size());
    const bool is_seen = answer.event >= 0 && answer.event < observed.event_count();
    out.events.push_back(is_seen ? timeline::EventIndex{answer.event} : timeline::kBeforeWindow);
    out.stacks.push_back(is_seen ? observed.events()[static_cast<std::size_t>(answer.event)].stack : trace::kNoStack);
  }
  return out;
}

// Frees alone follow where an exception ended the program.
bool AsksAfter(const trace::RequestTrace& requests, std::size_t failed) {
  for (std::size_t i = failed + 1; i < requests.requests.size(); ++i) {
    if (requests.requests[i].kind == trace::OpKind::kAlloc) return true;
  }
  return false;
}

std::optional<std::size_t> FirstSince(const std::vector<timeline::EventIndex>& events, timeline::EventIndex event) {
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (events[i] >= event) return i;
  }
  return std::nullopt;
}

}  // namespace

std::optional<analyses::Continuation> ProjectionOf(const replay::SnapshotProgram& program,
                                                   const timeline::Timeline& observed, const trace::StackTable& stacks,
                                                   const analyses::Steps& steps) {
  if (observed.oom_events().empty()) return std::nullopt;
  const std::shared_ptr<const trace::RequestTrace> shared = SharedWhatIfRequests(program, true);
  const trace::RequestTrace& requests = *shared;
  Asked asked = AskedOf(program, observed);
  if (asked.failures.empty() || AsksAfter(requests, asked.failures.back())) return std::nullopt;
  const analyses::ProgramParts parts(&stacks);
  analyses::CutOffRun run{&requests, asked.stacks, asked.failures.back(), {}, {}, &parts};
  asked.failures.pop_back();
  run.earlier_failures = asked.failures;
  if (!steps.steps.empty()) run.step_begin = FirstSince(asked.events, steps.steps.back().end);
  return analyses::Continue(run);
}

}  // namespace ashlar::remedies
