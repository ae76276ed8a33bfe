// The event log as the slow model of tests/allocator/policy would write it: the same settings, the same text, other
// code.
#ifndef ASHLAR_TESTS_ANALYZER_REPLAY_MODEL_LOG_H_
#define ASHLAR_TESTS_ANALYZER_REPLAY_MODEL_LOG_H_

#include <string>

#include "allocator/trace/request.h"
#include "analyzer/replay/request_replay.h"

namespace ashlar {

std::string ModelLog(const replay::RequestReplayOptions& options, const trace::RequestTrace& trace);

}  // namespace ashlar

#endif  // ASHLAR_TESTS_ANALYZER_REPLAY_MODEL_LOG_H_
