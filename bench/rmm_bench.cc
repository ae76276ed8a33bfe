// Processor time of an allocate and free pair in nanoseconds beside RMM's pool and arena (rival_rmm.h), in one process
// and in turn; the median of the rounds. No two live blocks may share a byte, or the exit code is 1.
//
//   rmm_bench [pairs [rounds]]
#include <time.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "bench/rival_rmm.h"
#include "bench/steady_state.h"

namespace ashlar::bench {
namespace {

template <RivalRmm::Kind kKind>
class Rmm {
 public:
  struct Handle {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
    Stream stream{};
  };
  Handle Allocate(std::uint64_t bytes, Stream stream = {}) { return {rmm_.Allocate(bytes, stream), bytes, stream}; }
  void Free(const Handle& handle) { rmm_.Free(handle.address, handle.bytes, handle.stream); }
  static std::uint64_t AddressOf(const Handle& handle) { return handle.address; }

 private:
  RivalRmm rmm_{kKind};
};

double ProcessorNanoseconds() {
  timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return 1e9 * static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec);
}

struct Pattern {
  std::string name;
  SteadyPlan plan;
  std::size_t arena_most;  // live blocks that RMM's arena can be asked for in a bearable time
};

struct Round {
  double ns = 0;
  bool is_right = true;
};

// A steady state of one block is a ping-pong, each time of another size.
template <typename Subject>
Round Run(const Pattern& pattern, std::size_t pairs) {
  Subject subject;
  SteadyState<Subject> steady(subject, pattern.plan);
  const double began = ProcessorNanoseconds();
  for (std::size_t i = 0; i < pairs; ++i) steady.Step();
  Round out{(ProcessorNanoseconds() - began) / static_cast<double>(pairs), true};
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
  for (std::size_t i = 0; i < steady.live().size(); ++i) {
    ranges.emplace_back(Subject::AddressOf(steady.live()[i]), steady.sizes()[i]);
  }
  std::sort(ranges.begin(), ranges.end());
  for (std::size_t i = 0; i + 1 < ranges.size(); ++i) {
    out.is_right &= ranges[i].first + ranges[i].second <= ranges[i + 1].first;
  }
  steady.FreeAll();
  return out;
}

double Median(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return times.empty() ? 0 : times[times.size() / 2];
}

bool Measure(const Pattern& pattern, std::size_t pairs, int rounds) {
  std::array<std::vector<double>, 4> times;
  bool is_right = true;
  const auto add = [&](std::size_t subject, const Round& round) {
    times[subject].push_back(round.ns);
    is_right &= round.is_right;
  };
  for (int i = 0; i < rounds; ++i) {
    add(0, Run<OursByAddress>(pattern, pairs));
    add(1, Run<OursByBlock>(pattern, pairs));
    add(2, Run<Rmm<RivalRmm::Kind::kPool>>(pattern, std::min<std::size_t>(pairs, 40'000)));
    if (pattern.plan.count > pattern.arena_most) continue;
    add(3, Run<Rmm<RivalRmm::Kind::kArena>>(pattern, std::min<std::size_t>(pairs, 40'000)));
  }
  std::printf("| %s |", pattern.name.c_str());
  for (const std::vector<double>& of : times) std::printf(of.empty() ? " - |" : " %.1f |", Median(of));
  std::printf(" %.2f |\n", Median(times[2]) / Median(times[0]));
  std::fflush(stdout);
  if (!is_right) std::printf("wrong answer: two live blocks share a byte\n");
  return is_right;
}

}  // namespace
}  // namespace ashlar::bench

int main(int argc, char** argv) {
  using ashlar::bench::SteadyPlan;
  // glibc leaves out atomic operations while a process has had one thread only; programs on a GPU have more.
  std::thread([] {}).join();
  const std::size_t pairs = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 200'000;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 5;
  std::printf(
      "| pattern | ours | ours, by block | RMM pool | RMM arena | RMM pool / ours |\n|---|---|---|---|---|---|\n");
  bool is_right = true;
  const auto measure = [&](const char* name, std::size_t count, bool is_fixed) {
    SteadyPlan plan;
    plan.count = count;
    plan.is_fixed = is_fixed;
    is_right &= ashlar::bench::Measure({name, plan, 1000}, pairs, rounds);
  };
  measure("one block of nine sizes", 1, true);
  measure("steady_fixed/1000", 1000, true);
  measure("steady_fixed/10000", 10'000, true);
  measure("steady_varying/1000", 1000, false);
  measure("steady_varying/10000", 10'000, false);
  return is_right ? 0 : 1;
}
