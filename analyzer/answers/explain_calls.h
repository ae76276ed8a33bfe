// Explains a trace of calls on device memory (trace::RecordsDeviceCalls). It has no caching allocator, so it has no
// stranded memory, settings or retries. The explanation says who held the memory and what was not freed.
#ifndef ASHLAR_ANALYZER_ANSWERS_EXPLAIN_CALLS_H_
#define ASHLAR_ANALYZER_ANSWERS_EXPLAIN_CALLS_H_

#include "absl/status/statusor.h"
#include "allocator/trace/snapshot.h"
#include "analyzer/answers/explain.h"

namespace ashlar::answers {

// FailedPrecondition where the trace and the segments contradict each other; OutOfRange where there is no such device.
absl::StatusOr<Explanation> ExplainCalls(const trace::Snapshot& snapshot, const ExplainOptions& options);

// What is said of settings for such a trace.
inline constexpr char kNoSettings[] =
    "the program calls the device itself, so that no allocator's settings apply; what a caching allocator would make "
    "of "
    "the same requests: ashlar convert FILE out.trace, then ashlar explain out.trace";

}  // namespace ashlar::answers

#endif  // ASHLAR_ANALYZER_ANSWERS_EXPLAIN_CALLS_H_
