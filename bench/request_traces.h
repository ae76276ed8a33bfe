// Plain text traces to replay, the same on every machine for a seed.
//
// The steps of a training run repeat: activations on the way forward, in reverse order gradients and scratch memory,
// weights and optimizer state that stay. A random trace has nothing that repeats.
#ifndef ASHLAR_BENCH_REQUEST_TRACES_H_
#define ASHLAR_BENCH_REQUEST_TRACES_H_

#include <cstddef>
#include <string>

namespace ashlar::bench {

// Each is `lines` lines long; blocks may be live at the end.
std::string TrainingTrace(std::size_t lines);
std::string RandomTrace(std::size_t lines);

// What the benchmarks use: 1,000,000, or the environment variable ASHLAR_BENCH_LINES for a quick check.
std::size_t TraceLines();

}  // namespace ashlar::bench

#endif  // ASHLAR_BENCH_REQUEST_TRACES_H_
