// The request that failed: what was asked for, what each rung of the ladder could give, and who raised it where.
//
//   const Failure failure = FailureAt(history, memory.accounting);
//   failure.headroom->value_bytes   // negative: it would not fit without holes either
//
// Sizes are bytes. Pure functions.
#ifndef ASHLAR_COMMANDS_EXPLAIN_FAILURE_H_
#define ASHLAR_COMMANDS_EXPLAIN_FAILURE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "allocator/core/oom_report.h"
#include "analyzer/analyses/causes/cause.h"
#include "analyzer/analyses/failure/failed_request.h"
#include "analyzer/analyses/message/oom_message_verdict.h"
#include "analyzer/analyses/state/live_stacks.h"
#include "analyzer/formats/oom/oom_message.h"

namespace ashlar::answers {

using analyses::ByteSpan;
using analyses::OomAccounting;

// The analysis of a request that failed in a trace, with stacks turned into lines.
struct FailureLines {
  analyses::FailedRequest request;
  std::vector<analyses::LabelledStack> release = {};  // who allocated the blocks of its release set, most bytes first
};

// Where in the program a failure was raised, from the traceback beside its message.
struct RaisedAt {
  std::string line;               // "model.py:56 mlp": the innermost of the program's own
  std::string code;               // of that line; empty where it was not printed
  std::vector<std::string> path;  // the program's own lines that lead there and itself, outermost first
};

// Of an out-of-memory message: who raised it, and the figures beside those of the accounting.
struct MessageFacts {
  std::string family;
  std::optional<int> device;
  bool is_cut_off = false;
  std::uint64_t told = 1;  // how often the text tells this same failure
  std::vector<formats::NamedFigure> figures;
  std::vector<std::int64_t> processes_beside = {};  // of the failing device, by a table beside the message
  std::vector<analyses::OomTry> tries = {};         // what to try, in this order; empty: PyTorch's settings help
};

// All empty where none failed.
struct Failure {
  std::optional<std::uint64_t> tried_bytes = {};
  std::optional<std::uint64_t> request_bytes = {};
  std::optional<ByteSpan> request_interval = {};
  std::optional<ByteSpan> headroom = {};
  std::optional<FailureLines> recorded = {};  // of the last out-of-memory error of a trace
  std::optional<MessageFacts> message = {};   // nullopt: no message
  std::optional<RaisedAt> raised_at = {};     // nullopt: no traceback beside the message, or no message
};

// Whether the history ends in a request that failed for want of memory.
bool HasFailure(const analyses::CauseHistory& history);
// Of its last failure: what it is judged by. With F free on the device, the allocator could hold reserved + F, so
// without any holes there would be reserved + F - live for the request.
core::OomFigures FiguresOfFailure(const analyses::CauseHistory& history, const OomAccounting& accounting);
Failure FailureAt(const analyses::CauseHistory& history, const OomAccounting& accounting);

MessageFacts FactsOf(const formats::OomMessage& message);
// From the message's traceback; nullopt where it has none.
std::optional<RaisedAt> RaisedAtOf(const formats::OomMessage& message);

}  // namespace ashlar::answers

#endif  // ASHLAR_COMMANDS_EXPLAIN_FAILURE_H_
