// Cost of one allocate and free pair: ours, the std::set engine, and malloc of a 1024th of each size as the floor.
//
//   ours         AllocateAddress, FreeAddress: the caller keeps an address, as callers of the rivals do
//   ours_block   Allocate, Free: the caller keeps the block, no pointer lookup
//   set          RivalSetEngine
//   malloc       no answer to check but the size
//
// Ours takes no lock here; the std::set engine takes its two, as its model does. Before anything is timed, the
// addresses of ours and of the std::set engine must be the same on a random program over several streams; after each
// benchmark the bytes live must be those its program left live.
#include <benchmark/benchmark.h>
#include <malloc.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "allocator/base/rng.h"
#include "allocator/core/caching_allocator.h"
#include "allocator/device/sim_device.h"
#include "bench/endless_device.h"
#include "bench/rival_set_engine.h"

namespace ashlar::bench {
namespace {

class OursByAddress {
 public:
  using Handle = std::uint64_t;
  Handle Allocate(std::uint64_t bytes, Stream stream = {}) { return *allocator_.AllocateAddress(bytes, stream); }
  void Free(Handle address) { benchmark::DoNotOptimize(allocator_.FreeAddress(address)); }
  std::int64_t requested_bytes() const { return allocator_.stats().requested_bytes.all().current; }

 private:
  device::SimDevice device_{EndlessDevice()};
  core::CachingAllocator allocator_{&device_, {}};
};

class OursByBlock {
 public:
  using Handle = core::Block*;
  Handle Allocate(std::uint64_t bytes, Stream stream = {}) { return *allocator_.Allocate(bytes, stream); }
  void Free(Handle block) { allocator_.Free(block); }
  std::int64_t requested_bytes() const { return allocator_.stats().requested_bytes.all().current; }

 private:
  device::SimDevice device_{EndlessDevice()};
  core::CachingAllocator allocator_{&device_, {}};
};

class SetEngine {
 public:
  using Handle = std::uint64_t;
  Handle Allocate(std::uint64_t bytes, Stream stream = {}) { return engine_.Allocate(bytes, stream); }
  void Free(Handle address) { engine_.Free(address); }
  std::int64_t requested_bytes() const { return engine_.requested_bytes(); }

 private:
  RivalSetEngine engine_;
};

class Malloc {
 public:
  using Handle = void*;
  static std::size_t Scaled(std::uint64_t bytes) { return std::max<std::size_t>(bytes / 1024, 16); }
  Handle Allocate(std::uint64_t bytes) {
    void* block = std::malloc(Scaled(bytes));
    benchmark::DoNotOptimize(block);
    return block;
  }
  void Free(Handle block) { std::free(block); }
};

std::uint64_t RandomSize(Rng& rng) {
  const std::uint64_t magnitude = std::uint64_t{512} << rng.Below(14);  // 512 B .. 4 MiB
  return magnitude + rng.Below(magnitude) + 1;
}

// The same addresses from both engines on a random program: the proof that the rival does the same work.
bool SameAddresses() {
  OursByAddress ours;
  OursByBlock ours_block;
  SetEngine set;
  Rng rng(7);
  struct Live {
    std::uint64_t address;
    core::Block* block;
  };
  std::vector<Live> live;
  for (int i = 0; i < 30'000; ++i) {
    if (live.size() > 600 || (!live.empty() && rng.Below(2) == 0)) {
      const std::size_t victim = rng.Below(live.size());
      ours.Free(live[victim].address);
      ours_block.Free(live[victim].block);
      set.Free(live[victim].address);
      live[victim] = live.back();
      live.pop_back();
      continue;
    }
    const std::uint64_t bytes = rng.Below(50) == 0 ? rng.Between(8 * kMiB, 64 * kMiB) : RandomSize(rng);
    const Stream stream{rng.Below(3)};
    const Live made{ours.Allocate(bytes, stream), ours_block.Allocate(bytes, stream)};
    if (made.address != set.Allocate(bytes, stream) || made.address != made.block->address) return false;
    live.push_back(made);
  }
  return true;
}

bool IsVerified(benchmark::State& state) {
  static const bool same = SameAddresses();
  if (!same) state.SkipWithError("wrong answer: ours and the std::set engine place blocks at different addresses");
  return same;
}

// After the timed loop: what is live must be what the program left live.
template <typename Subject>
void CheckLive(benchmark::State& state, const Subject& subject, const std::vector<typename Subject::Handle>&,
               const std::vector<std::uint64_t>& sizes) {
  std::int64_t expected = 0;
  for (const std::uint64_t size : sizes) expected += static_cast<std::int64_t>(size);
  if (subject.requested_bytes() != expected) state.SkipWithError("wrong answer: live bytes differ at the end");
}

void CheckLive(benchmark::State& state, const Malloc&, const std::vector<void*>& live,
               const std::vector<std::uint64_t>& sizes) {
  for (std::size_t i = 0; i < live.size(); ++i) {
    const bool fits = live[i] != nullptr && malloc_usable_size(live[i]) >= Malloc::Scaled(sizes[i]);
    if (!fits) state.SkipWithError("wrong answer: a block is too small");
  }
}

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

// 64 live blocks of mixed sizes, freed newest first or oldest first; 64 different batches in turn.
template <typename Subject>
void Batch(benchmark::State& state, bool newest_first) {
  if (!IsVerified(state)) return;
  Rng rng(2);
  std::vector<std::uint64_t> sizes(64 * kBatch);
  for (std::uint64_t& size : sizes) size = RandomSize(rng);
  Subject subject;
  std::array<typename Subject::Handle, kBatch> live;
  std::size_t batch = 0;
  for (auto _ : state) {
    const std::uint64_t* size = &sizes[batch++ % 64 * kBatch];
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

constexpr std::array<std::uint64_t, 9> kFixedSizes = {512,      4 * kKiB, 16 * kKiB, 64 * kKiB, 256 * kKiB,
                                                      1 * kMiB, 2 * kMiB, 4 * kMiB,  8 * kMiB};

// range(0) blocks live; a random one is freed, then one of random size allocated in its place.
template <typename Subject>
void Steady(benchmark::State& state, bool fixed) {
  if (!IsVerified(state)) return;
  const auto count = static_cast<std::uint64_t>(state.range(0));
  Rng rng(3);
  const auto random_size = [&] { return fixed ? kFixedSizes[rng.Below(kFixedSizes.size())] : RandomSize(rng); };
  struct Turn {
    std::uint64_t bytes;
    std::uint32_t victim;
  };
  std::vector<Turn> program(std::size_t{1} << 18);
  for (Turn& turn : program) turn = {random_size(), static_cast<std::uint32_t>(rng.Below(count))};
  std::vector<std::uint64_t> sizes(count);
  for (std::uint64_t& size : sizes) size = random_size();
  Subject subject;
  std::vector<typename Subject::Handle> live(count);
  for (std::size_t i = 0; i < count; ++i) live[i] = subject.Allocate(sizes[i]);
  std::size_t at = 0;
  const auto step = [&] {
    const Turn& turn = program[at++ % program.size()];
    subject.Free(live[turn.victim]);
    live[turn.victim] = subject.Allocate(turn.bytes);
    sizes[turn.victim] = turn.bytes;
  };
  for (std::uint64_t i = 0; i < 2 * count; ++i) step();  // the fragmentation of a warm process
  for (auto _ : state) step();
  CheckLive(state, subject, live, sizes);
  for (const auto& handle : live) subject.Free(handle);
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()));
}
template <typename Subject>
void SteadyFixed(benchmark::State& state) {
  Steady<Subject>(state, true);
}
template <typename Subject>
void SteadyVarying(benchmark::State& state) {
  Steady<Subject>(state, false);
}

using Function = void (*)(benchmark::State&);
struct Named {
  const char* subject;
  Function function;
};

// Subjects of one pattern run next to each other, so that a change in the machine's load hits them alike.
void Register(const std::string& pattern, const std::vector<Named>& subjects, const std::vector<std::int64_t>& args) {
  for (const std::int64_t arg : args) {
    for (const Named& named : subjects) {
      auto* made = benchmark::RegisterBenchmark((pattern + "/" + named.subject).c_str(), named.function);
      if (arg != 0) made->Arg(arg);
    }
  }
}

#define ASHLAR_SUBJECTS(pattern)                                                                           \
  {                                                                                                        \
    {"ours", pattern<OursByAddress>}, {"ours_block", pattern<OursByBlock>}, {"set", pattern<SetEngine>}, { \
      "malloc", pattern<Malloc>                                                                            \
    }                                                                                                      \
  }

void RegisterAll() {
  Register("ping_pong", ASHLAR_SUBJECTS(PingPong), {4 * kKiB, 1 * kMiB, 64 * kMiB});
  Register("lifo_64", ASHLAR_SUBJECTS(Lifo), {0});
  Register("fifo_64", ASHLAR_SUBJECTS(Fifo), {0});
  Register("steady_fixed", ASHLAR_SUBJECTS(SteadyFixed), {1'000, 10'000, 100'000});
  Register("steady_varying", ASHLAR_SUBJECTS(SteadyVarying), {1'000, 10'000, 100'000});
}

#undef ASHLAR_SUBJECTS

}  // namespace
}  // namespace ashlar::bench

int main(int argc, char** argv) {
  // glibc leaves out atomic operations while a process has had one thread only; programs on a GPU have more.
  std::thread([] {}).join();
  ashlar::bench::RegisterAll();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
