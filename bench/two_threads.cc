// Two threads on one allocator: streams of their own, one stream for both, and one that allocates what the other frees.
// Wall time over both; "one" is the same work on one thread. In the steady states each thread holds 1,000 blocks.
#include <atomic>
#include <chrono>
#include <thread>

#include "bench/answers.h"
#include "bench/partner.h"
#include "bench/patterns.h"

namespace ashlar::bench {
namespace {

constexpr std::int64_t kPairs = 20'000;  // of a thread in one iteration
constexpr std::size_t kHeld = 1'000;

// What one thread does: `kHeld` blocks of which a random one is replaced, or none and ping-pong.
template <typename Subject>
struct alignas(256) Part {
  Part(Subject& its_subject, Stream its_stream, bool is_steady)
      : subject(its_subject),
        stream(its_stream),
        rng(Handle(its_stream) + 5),
        held(is_steady ? kHeld : 0),
        sizes(held.size()) {
    for (std::size_t i = 0; i < held.size(); ++i) held[i] = subject.Allocate(sizes[i] = RandomSize(rng), stream);
    for (std::size_t i = 0; i < 2 * held.size(); ++i) Replace();
  }
  void Replace() {
    const std::size_t victim = rng.Below(held.size());
    subject.Free(held[victim]);
    held[victim] = subject.Allocate(sizes[victim] = RandomSize(rng), stream);
  }
  void Run() {
    if (held.empty()) {
      for (std::int64_t i = 0; i < kPairs; ++i) subject.Free(subject.Allocate(4096 - (i & 255), stream));
    } else {
      for (std::int64_t i = 0; i < kPairs; ++i) Replace();
    }
  }
  static void RunPart(void* part) { static_cast<Part*>(part)->Run(); }

  Subject& subject;
  const Stream stream;
  Rng rng;
  std::vector<typename Subject::Handle> held;
  std::vector<std::uint64_t> sizes;
};

enum class Way { kOne, kOwn, kSame };

template <typename Subject, Way kWay, bool kSteady>
void Pairs(benchmark::State& state) {
  if (!IsVerified(state)) return;
  Subject subject;
  Part<Subject> mine(subject, Stream{1}, kSteady);
  Part<Subject> other(subject, Stream{kWay == Way::kSame ? 1u : 2u}, kSteady);
  {
    Partner partner(&Part<Subject>::RunPart, &other);
    for (auto _ : state) {
      const auto begin = std::chrono::steady_clock::now();
      if (kWay != Way::kOne) partner.Start();
      mine.Run();
      if (kWay != Way::kOne) partner.WaitUntilDone();
      state.SetIterationTime(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
  }
  mine.held.insert(mine.held.end(), other.held.begin(), other.held.end());
  mine.sizes.insert(mine.sizes.end(), other.sizes.begin(), other.sizes.end());
  CheckLive(state, subject, mine.held, mine.sizes);
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * kPairs * (kWay == Way::kOne ? 1 : 2));
}

// A queue of one writer and one reader.
template <typename Item>
class Queue {
 public:
  void Push(Item item) {
    const std::uint64_t at = written_.load(std::memory_order_relaxed);
    while (at - read_.load(std::memory_order_acquire) == kSlots) std::this_thread::yield();
    slots_[at % kSlots] = item;
    written_.store(at + 1, std::memory_order_release);
  }
  Item Pop() {
    const std::uint64_t at = read_.load(std::memory_order_relaxed);
    while (written_.load(std::memory_order_acquire) == at) std::this_thread::yield();
    const Item item = slots_[at % kSlots];
    read_.store(at + 1, std::memory_order_release);
    return item;
  }

 private:
  static constexpr std::size_t kSlots = 256;
  alignas(256) std::atomic<std::uint64_t> written_{0};
  alignas(256) std::atomic<std::uint64_t> read_{0};
  Item slots_[kSlots];
};

template <typename Subject>
struct Freer {
  Subject& subject;
  Queue<typename Subject::Handle> queue = {};
  static void Run(void* freer) {
    auto& self = *static_cast<Freer*>(freer);
    for (std::int64_t i = 0; i < kPairs; ++i) self.subject.Free(self.queue.Pop());
  }
};

template <typename Subject>
void HandOver(benchmark::State& state) {
  if (!IsVerified(state)) return;
  Subject subject;
  Freer<Subject> freer{subject};
  {
    Partner partner(&Freer<Subject>::Run, &freer);
    for (auto _ : state) {
      const auto begin = std::chrono::steady_clock::now();
      partner.Start();
      for (std::int64_t i = 0; i < kPairs; ++i) freer.queue.Push(subject.Allocate(4096 - (i & 255), Stream{1}));
      partner.WaitUntilDone();
      state.SetIterationTime(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    }
  }
  CheckLive(state, subject, {}, {});
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * kPairs);
}

template <typename Subject>
void PingOne(benchmark::State& state) {
  Pairs<Subject, Way::kOne, false>(state);
}
template <typename Subject>
void PingOwn(benchmark::State& state) {
  Pairs<Subject, Way::kOwn, false>(state);
}
template <typename Subject>
void PingSame(benchmark::State& state) {
  Pairs<Subject, Way::kSame, false>(state);
}
template <typename Subject>
void SteadyOne(benchmark::State& state) {
  Pairs<Subject, Way::kOne, true>(state);
}
template <typename Subject>
void SteadyOwn(benchmark::State& state) {
  Pairs<Subject, Way::kOwn, true>(state);
}
template <typename Subject>
void SteadySame(benchmark::State& state) {
  Pairs<Subject, Way::kSame, true>(state);
}

#define ASHLAR_BENCH_THREAD_SUBJECTS(pattern)                                                                   \
  {                                                                                                             \
      {"ours", pattern<OursByAddress>}, {"ours_block", pattern<OursByBlock>},                                   \
      {"set", pattern<SetEngine>},      ASHLAR_BENCH_CUB_SUBJECT("cub2", pattern, Cub2){"tlsf", pattern<Tlsf>}, \
      {"malloc", pattern<Malloc>},                                                                              \
  }

}  // namespace

void RegisterTwoThreads() {
  Register("threads_ping_one", ASHLAR_BENCH_THREAD_SUBJECTS(PingOne), kPairs, {});
  Register("threads_ping_own", ASHLAR_BENCH_THREAD_SUBJECTS(PingOwn), kPairs, {});
  Register("threads_ping_same", ASHLAR_BENCH_THREAD_SUBJECTS(PingSame), kPairs, {});
  Register("threads_steady_one", ASHLAR_BENCH_THREAD_SUBJECTS(SteadyOne), kPairs, {});
  Register("threads_steady_own", ASHLAR_BENCH_THREAD_SUBJECTS(SteadyOwn), kPairs, {});
  Register("threads_steady_same", ASHLAR_BENCH_THREAD_SUBJECTS(SteadySame), kPairs, {});
  Register("threads_hand_over", ASHLAR_BENCH_THREAD_SUBJECTS(HandOver), kPairs, {});
}

}  // namespace ashlar::bench
