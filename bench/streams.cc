// Many streams in use at once: a steady state of 1,000 blocks over 1 to 1,024 streams on one thread, and of 1,000
// blocks a thread on several threads, each on as many streams of its own, or all on the same. And streams that are used
// once, after 10,000 to a million others.
#include <malloc.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "allocator/core/caching_allocator.h"
#include "allocator/device/sim_device.h"
#include "bench/partner.h"
#include "bench/patterns.h"
#include "bench/steady_state.h"

namespace ashlar::bench {
namespace {

constexpr std::int64_t kPairsAtOnce = 20'000;  // of a thread in one iteration

std::uint64_t StreamCount(const benchmark::State& state) { return static_cast<std::uint64_t>(state.range(0)); }

template <typename Subject>
void Streams(benchmark::State& state) {
  if (!IsVerified(state)) return;
  Subject subject;
  SteadyState<Subject> steady(subject, {.streams = StreamCount(state)});
  for (auto _ : state) steady.Step();
  CheckLive(state, subject, steady.live(), steady.sizes());
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()));
}

template <typename Subject>
void RunSome(void* steady) {
  for (std::int64_t i = 0; i < kPairsAtOnce; ++i) static_cast<SteadyState<Subject>*>(steady)->Step();
}

template <typename Subject, std::uint64_t kThreads, bool kShared>
void StreamsOfThreads(benchmark::State& state) {
  if (!IsVerified(state)) return;
  Subject subject;
  std::vector<std::unique_ptr<SteadyState<Subject>>> parts;
  for (std::uint64_t i = 0; i < kThreads; ++i) {
    const std::uint64_t first_stream = kShared ? 0 : i * StreamCount(state);
    parts.push_back(std::make_unique<SteadyState<Subject>>(
        subject, SteadyPlan{.streams = StreamCount(state), .first_stream = first_stream, .seed = i}));
  }
  {
    std::vector<std::unique_ptr<Partner>> partners;
    for (std::uint64_t i = 1; i < kThreads; ++i) {
      partners.push_back(std::make_unique<Partner>(&RunSome<Subject>, parts[i].get()));
    }
    for (auto _ : state) {
      const auto begin = std::chrono::steady_clock::now();
      for (const auto& partner : partners) partner->Start();
      RunSome<Subject>(parts[0].get());
      for (const auto& partner : partners) partner->WaitUntilDone();
      state.SetIterationTime(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
  }
  std::vector<typename Subject::Handle> live;
  std::vector<std::uint64_t> sizes;
  for (const auto& part : parts) {
    live.insert(live.end(), part->live().begin(), part->live().end());
    sizes.insert(sizes.end(), part->sizes().begin(), part->sizes().end());
  }
  CheckLive(state, subject, live, sizes);
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * kThreads) * kPairsAtOnce);
}
template <typename Subject>
void TwoOwn(benchmark::State& state) {
  StreamsOfThreads<Subject, 2, false>(state);
}
template <typename Subject>
void TwoSame(benchmark::State& state) {
  StreamsOfThreads<Subject, 2, true>(state);
}
template <typename Subject>
void EightOwn(benchmark::State& state) {
  StreamsOfThreads<Subject, 8, false>(state);
}

// One that another stream uses too, on a device that has room for 500: what was kept of the others goes on the way.
void OneShotStreams(benchmark::State& state) {
  device::SimDeviceOptions options;
  options.capacity_bytes = 1000 * kMiB;
  device::SimDevice device(options);
  core::CachingAllocator allocator(&device, {});
  std::uint64_t next = 1;
  const auto use_one = [&] {
    core::Block* block = *allocator.Allocate(4 * kKiB, Stream{next});
    allocator.RecordStream(block, Stream{next + 1});
    allocator.Free(block);
    device.CompleteStream(Stream{next + 1});
    next += 2;
  };
  for (std::uint64_t i = 0; i < StreamCount(state); ++i) use_one();
  for (auto _ : state) use_one();
  state.counters["heap_bytes"] = static_cast<double>(mallinfo2().uordblks);
}

#define ASHLAR_BENCH_STREAM_SUBJECTS(pattern) \
  {{"ours", pattern<OursByAddress>},          \
   {"ours_block", pattern<OursByBlock>},      \
   {"set", pattern<SetEngine>},               \
   ASHLAR_BENCH_CUB_SUBJECT("cub2", pattern, Cub2)}

}  // namespace

void RegisterStreams() {
  const std::vector<std::int64_t> counts = {1, 2, 4, 8, 16, 64, 256, 1024};
  Register("streams", ASHLAR_BENCH_STREAM_SUBJECTS(Streams), 1, counts);
  Register("threads_streams_own2", ASHLAR_BENCH_STREAM_SUBJECTS(TwoOwn), kPairsAtOnce, {1, 16, 64, 1024});
  Register("threads_streams_same2", ASHLAR_BENCH_STREAM_SUBJECTS(TwoSame), kPairsAtOnce, {1, 16, 64, 1024});
  Register("threads_streams_own8", ASHLAR_BENCH_STREAM_SUBJECTS(EightOwn), kPairsAtOnce, {1, 16, 64, 1024});
  Register("one_shot_streams", {{"ours_block", OneShotStreams}}, 10, {10'000, 100'000, 1'000'000});
}

}  // namespace ashlar::bench
