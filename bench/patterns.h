// The patterns of use that are measured, as benchmarks named pattern/subject[/number]. Each runs a fixed number of
// pairs, ASHLAR_BENCH_PAIRS or the default (and a tenth of it where noted), so that a pattern is set up once.
#ifndef ASHLAR_BENCH_PATTERNS_H_
#define ASHLAR_BENCH_PATTERNS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "bench/subjects.h"

namespace ashlar::bench {

// Allocate and free pairs of each benchmark.
std::int64_t PairCount();

struct Named {
  const char* subject;
  void (*function)(benchmark::State&);
};

// Subjects of one pattern run next to each other, so that a change in the machine's load hits them alike.
// `pairs` is what one iteration does; `args` may be empty.
void Register(const std::string& pattern, const std::vector<Named>& subjects, std::int64_t pairs,
              const std::vector<std::int64_t>& args);

void RegisterOneThread();
void RegisterTwoThreads();
void RegisterStreams();

#ifdef ASHLAR_BENCH_CUB
#define ASHLAR_BENCH_CUB_SUBJECT(name, pattern, subject) {name, pattern<subject>},
#else
#define ASHLAR_BENCH_CUB_SUBJECT(name, pattern, subject)
#endif

}  // namespace ashlar::bench

#endif  // ASHLAR_BENCH_PATTERNS_H_
