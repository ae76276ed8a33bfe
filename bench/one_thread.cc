// One thread: ping-pong, batches freed newest or oldest first, steady states, and the tail of single pairs.
#include <array>
#include <chrono>

#include "bench/answers.h"
#include "bench/patterns.h"
#include "bench/steady_state.h"

namespace ashlar::bench {
namespace {

// The request varies, the rounded size does not.
template <typename Subject>
void PingPong(benchmark::State& state) {
  if (!IsVerified(state)) return;
  const auto size_bytes = static_cast<std::uint64_t>(state.range(0));
  Rng rng(1);
  std::array<std::uint64_t, 1024> sizes;
  for (std::uint64_t& size : sizes) size = size_bytes - rng.Below(500);
  Subject subject;
  std::size_t i = 0;
  for (auto _ : state) {
    auto handle = subject.Allocate(sizes[i++ % sizes.size()]);
    benchmark::DoNotOptimize(handle);
    subject.Free(handle);
  }
  CheckLive(state, subject, {}, {});
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()));
}

constexpr std::size_t kBatch = 64;

// 64 live blocks of mixed sizes, freed newest first or oldest first; range(0) different batches in turn.
template <typename Subject>
void Batch(benchmark::State& state, bool newest_first) {
  if (!IsVerified(state)) return;
  Rng rng(2);
  const auto batches = static_cast<std::size_t>(state.range(0));
  std::vector<std::uint64_t> sizes(batches * kBatch);
  for (std::uint64_t& size : sizes) size = RandomSize(rng);
  Subject subject;
  std::array<typename Subject::Handle, kBatch> live;
  std::size_t batch = 0;
  for (auto _ : state) {
    const std::uint64_t* size = &sizes[batch++ % batches * kBatch];
    for (std::size_t i = 0; i < kBatch; ++i) live[i] = subject.Allocate(size[i]);
    benchmark::DoNotOptimize(live.data());
    for (std::size_t i = 0; i < kBatch; ++i) subject.Free(live[newest_first ? kBatch - 1 - i : i]);
  }
  CheckLive(state, subject, {}, {});
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * kBatch));
}
template <typename Subject>
void Lifo(benchmark::State& state) {
  Batch<Subject>(state, true);
}
template <typename Subject>
void Fifo(benchmark::State& state) {
  Batch<Subject>(state, false);
}

std::size_t Count(const benchmark::State& state) { return static_cast<std::size_t>(state.range(0)); }

template <typename Subject, bool kFixed>
void Steady(benchmark::State& state) {
  if (!IsVerified(state)) return;
  Subject subject;
  SteadyState<Subject> steady(subject, {.count = Count(state), .is_fixed = kFixed});
  for (auto _ : state) steady.Step();
  CheckLive(state, subject, steady.live(), steady.sizes());
  steady.FreeAll();
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()));
}
template <typename Subject>
void SteadyFixed(benchmark::State& state) {
  Steady<Subject, true>(state);
}
template <typename Subject>
void SteadyVarying(benchmark::State& state) {
  Steady<Subject, false>(state);
}

// The slowest pairs of a steady state, the clock's own cost included.
template <typename Subject>
void Tail(benchmark::State& state) {
  if (!IsVerified(state)) return;
  Subject subject;
  SteadyState<Subject> steady(subject, {.count = Count(state)});
  std::vector<std::int64_t> times_ns;
  times_ns.reserve(static_cast<std::size_t>(state.max_iterations));
  using Clock = std::chrono::steady_clock;
  for (auto _ : state) {
    const Clock::time_point begin = Clock::now();
    steady.Step();
    times_ns.push_back(std::chrono::nanoseconds(Clock::now() - begin).count());
  }
  CheckLive(state, subject, steady.live(), steady.sizes());
  steady.FreeAll();
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()));
  std::sort(times_ns.begin(), times_ns.end());
  const auto count = static_cast<double>(times_ns.size());
  const auto percentile = [&](double p) {
    return static_cast<double>(times_ns[std::min(times_ns.size() - 1, static_cast<std::size_t>(p / 100 * count))]);
  };
  for (const auto& [name, p] : {std::pair{"p50", 50.0}, {"p99", 99.0}, {"p99.9", 99.9}, {"p99.99", 99.99}}) {
    state.counters[name] = percentile(p);
  }
}

// What events cost, to those that record one at every free; ours must make no call.
template <typename Subject>
void EventsPingPong(benchmark::State& state) {
  if (!IsVerified(state)) return;
  Subject subject;
  for (auto _ : state) subject.Free(subject.Allocate(64 * kKiB));
  if constexpr (std::is_base_of_v<Ours, Subject>) {
    if (subject.EventCalls() != 0) state.SkipWithError("wrong answer: a cache hit called the device");
  }
  CheckLive(state, subject, {}, {});
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()));
}

#define ASHLAR_BENCH_SUBJECTS(pattern)                                            \
  {                                                                               \
      {"ours", pattern<OursByAddress>},                                           \
      {"ours_block", pattern<OursByBlock>},                                       \
      {"ours_expandable", pattern<OursExpandable>},                               \
      {"ours_private", pattern<OursPrivate>},                                     \
      {"set", pattern<SetEngine>},                                                \
      ASHLAR_BENCH_CUB_SUBJECT("cub2", pattern, Cub2)                             \
          ASHLAR_BENCH_CUB_SUBJECT("cub8", pattern, Cub8){"tlsf", pattern<Tlsf>}, \
      {"malloc", pattern<Malloc>},                                                \
  }

}  // namespace

void RegisterOneThread() {
  const std::vector<std::int64_t> counts = {1'000, 10'000, 100'000};
  Register("ping_pong", ASHLAR_BENCH_SUBJECTS(PingPong), 1, {4 * kKiB, 1 * kMiB, 64 * kMiB});
  Register("lifo_64", ASHLAR_BENCH_SUBJECTS(Lifo), kBatch, {1, 64});
  Register("fifo_64", ASHLAR_BENCH_SUBJECTS(Fifo), kBatch, {1, 64});
  Register("steady_fixed", ASHLAR_BENCH_SUBJECTS(SteadyFixed), 1, counts);
  Register("steady_varying", ASHLAR_BENCH_SUBJECTS(SteadyVarying), 1, counts);
  Register("tail_varying", ASHLAR_BENCH_SUBJECTS(Tail), 1, {10'000});
  Register("events_300ns",
           {{"ours", EventsPingPong<OursByAddress>},
            ASHLAR_BENCH_CUB_SUBJECT("cub2", EventsPingPong, Cub2Events300){"set", EventsPingPong<SetEngine>}},
           10, {});
}

}  // namespace ashlar::bench
