// Runs independent jobs on several threads.
//
//   std::vector<Result> results(count);
//   RunInParallel(count, ThreadCount(0), [&](std::size_t i) { results[i] = Compute(i); });
//
// Every job is run once, in no fixed order; what it returns goes to a place of its own, so the result is the same
// whatever the number of threads. Returns when all are done.
#ifndef ASHLAR_ANALYZER_WHATIF_PARALLEL_H_
#define ASHLAR_ANALYZER_WHATIF_PARALLEL_H_

#include <cstddef>
#include <functional>

namespace ashlar::whatif {

// `asked`, or one a core where that is 0.
std::size_t ThreadCount(std::size_t asked);

// `job` must be safe to call from several threads at once and must not throw.
void RunInParallel(std::size_t count, std::size_t threads, const std::function<void(std::size_t)>& job);

}  // namespace ashlar::whatif

#endif  // ASHLAR_ANALYZER_WHATIF_PARALLEL_H_
