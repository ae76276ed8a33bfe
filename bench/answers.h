// Checks a benchmark's answers. Before anything is timed, a random program runs over several streams: ours must place
// every block where the std::set engine does, by address and by block, and no allocator may hand out two live blocks
// that share a byte. After each benchmark: the same of what is live, and the bytes live are those the program left.
#ifndef ASHLAR_BENCH_ANSWERS_H_
#define ASHLAR_BENCH_ANSWERS_H_

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "allocator/base/rng.h"
#include "bench/subjects.h"

namespace ashlar::bench {

// 512 B to 8 MiB, every magnitude as likely.
inline std::uint64_t RandomSize(Rng& rng) {
  const std::uint64_t magnitude = std::uint64_t{512} << rng.Below(14);
  return magnitude + rng.Below(magnitude) + 1;
}

// After the timed loop: `live[i]` holds a block for `sizes[i]`.
template <typename Subject>
void CheckLive(benchmark::State& state, const Subject& subject, const std::vector<typename Subject::Handle>& live,
               const std::vector<std::uint64_t>& sizes) {
  std::int64_t expected = 0;
  for (const std::uint64_t size : sizes) expected += subject.Counted(size);
  if (subject.live_bytes() != expected) state.SkipWithError("wrong answer: live bytes differ at the end");
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
  for (std::size_t i = 0; i < live.size(); ++i) ranges.emplace_back(Subject::AddressOf(live[i]), sizes[i]);
  std::sort(ranges.begin(), ranges.end());
  for (std::size_t i = 1; i < ranges.size(); ++i) {
    const bool overlaps = ranges[i - 1].first + ranges[i - 1].second > ranges[i].first;
    if (overlaps) state.SkipWithError("wrong answer: two live blocks share bytes");
  }
}

inline void CheckLive(benchmark::State& state, const Malloc&, const std::vector<void*>& live,
                      const std::vector<std::uint64_t>& sizes) {
  for (std::size_t i = 0; i < live.size(); ++i) {
    const bool fits = live[i] != nullptr && malloc_usable_size(live[i]) >= Malloc::Scaled(sizes[i]);
    if (!fits) state.SkipWithError("wrong answer: a block is too small");
  }
}

// Runs the random program of answers.cc once in this process; false, and the benchmark is skipped, when it went wrong.
bool IsVerified(benchmark::State& state);

}  // namespace ashlar::bench

#endif  // ASHLAR_BENCH_ANSWERS_H_
