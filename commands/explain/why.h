// Why: the causes that were looked for, what came of taking the found ones away, and what the program itself can
// change.
//
//   const absl::StatusOr<Why> why = FindWhy(context, requests, settings, progress);
//   why->causes.front().finding.kind
#ifndef ASHLAR_COMMANDS_EXPLAIN_WHY_H_
#define ASHLAR_COMMANDS_EXPLAIN_WHY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "analyzer/analyses/causes/cause.h"
#include "analyzer/analyses/message/oom_message_verdict.h"
#include "analyzer/whatif/fix_tests.h"
#include "analyzer/whatif/program_remedies.h"

namespace ashlar::answers {

// One of the causes looked for, and the replay that took it away.
struct ExplainedCause {
  analyses::CauseFinding finding;
  std::optional<whatif::FixTest> fix = {};  // nullopt: not found, or no replay can take it away
  std::vector<std::string> lines = {};      // of the program, most bytes first
};

struct Why {
  std::vector<ExplainedCause> causes = {};           // found ones first
  std::vector<whatif::ProgramRemedy> remedies = {};  // in the order of the causes
  std::uint64_t to_come_bytes = 0;  // of an optimizer in its first step: what the rest of the step will make
};

// Of a context with a history; `settings` are what its replays run under. An error is a replay's own.
absl::StatusOr<Why> FindWhy(const analyses::CauseContext& context, const whatif::RecordedRequests& requests,
                            const whatif::WhatIfSettings& settings, const whatif::Progress& progress);
// Of a message, which no replay goes with.
Why WhyOfMessage(const analyses::OomMessageVerdict& message);

}  // namespace ashlar::answers

#endif  // ASHLAR_COMMANDS_EXPLAIN_WHY_H_
