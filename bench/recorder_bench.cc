// What recording costs: allocate and free pairs without a sink, with a sink that does nothing (the one lock that any
// sink needs), with a ring, and with a file. A pair is three events (alloc, free_requested, free_completed), so that
// the recorder's own cost is (ring or file - empty sink) / 3 an event. After each run the recording is read back: it
// must hold every event, and the last of them must be those that an empty sink saw in the same program.
//
// two_threads: each makes its pairs on a stream of its own, and the time is the mean of the threads' processor time for
// a pair, waits for locks included. There each stream's part of the recording must be what an empty sink saw of a
// thread.
#include <benchmark/benchmark.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/base/fingerprint.h"
#include "allocator/base/rng.h"
#include "allocator/core/caching_allocator.h"
#include "allocator/core/recorder.h"
#include "allocator/trace/codec.h"
#include "bench/endless_device.h"

namespace ashlar::bench {
namespace {

enum Mode { kNoSink, kEmptySink, kRing, kFile };

constexpr std::int64_t kPairs = 300'000;
constexpr std::size_t kCompared = 10'000;  // of the last events

class EmptySink final : public trace::EventSink {
 public:
  void OnEvent(const trace::Event& event, std::uint64_t) override { benchmark::DoNotOptimize(&event); }
};

class LastEvents final : public trace::EventSink {
 public:
  void OnEvent(const trace::Event& event, std::uint64_t) override {
    ++count;
    fingerprints.push_back(static_cast<std::uint64_t>(event.action) << 60 ^ event.address ^ event.size_bytes);
  }
  std::uint64_t count = 0;
  std::vector<std::uint64_t> fingerprints;
};

std::uint64_t RandomSize(Rng& rng) { return rng.Between(1, std::uint64_t{512} << rng.Below(14)); }

// `live` blocks of mixed sizes; each pair frees one at random and allocates another. live == 1: one size, over and
// over.
class Program {
 public:
  Program(core::CachingAllocator& allocator, std::size_t live, Stream stream = Stream{0})
      : allocator_(allocator), stream_(stream) {
    for (std::size_t i = 0; i < live; ++i) blocks_.push_back(*allocator_.Allocate(Size(), stream_));
  }
  void Pair() {
    core::Block*& block = blocks_[blocks_.size() == 1 ? 0 : rng_.Below(blocks_.size())];
    allocator_.Free(block);
    block = *allocator_.Allocate(Size(), stream_);
  }

 private:
  std::uint64_t Size() { return blocks_.size() <= 1 ? 64 * kKiB : RandomSize(rng_); }

  core::CachingAllocator& allocator_;
  const Stream stream_;
  Rng rng_{9};
  std::vector<core::Block*> blocks_;
};

std::string BytesOf(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Empty, or what is wrong with the recording.
std::string Judge(const trace::Snapshot& read, std::size_t live) {
  device::SimDevice device(EndlessDevice());
  core::CachingAllocator allocator(&device, {});
  LastEvents all;
  Program program(allocator, live);
  allocator.SetSink(&all);
  for (std::int64_t i = 0; i < kPairs; ++i) program.Pair();
  const std::vector<trace::Event>& events = read.device_traces.at(0);
  if (read.recording->events_before + events.size() != all.count) {
    return absl::StrCat(events.size(), " events and ", read.recording->events_before, " before, not ", all.count);
  }
  for (std::size_t i = 1; i <= std::min(kCompared, events.size()); ++i) {
    const trace::Event& event = events[events.size() - i];
    const std::uint64_t print = static_cast<std::uint64_t>(event.action) << 60 ^ event.address ^ event.size_bytes;
    if (print != all.fingerprints[all.count - i])
      return absl::StrCat("the event ", i, " before the end is another one");
  }
  return "";
}

void BM_Pairs(benchmark::State& state, Mode mode, std::size_t live) {
  const std::string path = absl::StrCat("/tmp/ashlar_recorder_bench_", getpid());
  device::SimDevice device(EndlessDevice());
  core::CachingAllocator allocator(&device, {});
  Program program(allocator, live);
  EmptySink empty;
  std::unique_ptr<core::Recorder> recorder;
  if (mode == kEmptySink) allocator.SetSink(&empty);
  if (mode == kRing) recorder = *core::Recorder::Ring(&allocator, {.ring_bytes = 4 * kMiB});
  if (mode == kFile) recorder = *core::Recorder::ToFile(&allocator, path);
  for (auto _ : state) program.Pair();
  if (recorder != nullptr) {
    const absl::Status status = mode == kRing ? recorder->Write(path) : recorder->Finish();
    const std::string bytes = BytesOf(path);
    const absl::StatusOr<trace::Snapshot> read = trace::Decode(bytes);
    const std::string wrong = !status.ok() ? std::string(status.message())
                              : !read.ok() ? std::string(read.status().message())
                                           : Judge(*read, live);
    if (!wrong.empty()) state.SkipWithError(absl::StrCat("wrong answer: ", wrong).c_str());
    if (mode == kFile) state.counters["bytes_per_event"] = static_cast<double>(bytes.size()) / (3.0 * kPairs);
    std::remove(path.c_str());
  }
  allocator.SetSink(nullptr);
}

constexpr std::uint64_t kThreads = 2;

std::int64_t ThreadNanoseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// What happened in its order, but for segments and addresses: when a stream gets new memory depends on nobody else.
std::uint64_t PrintOf(const trace::Event& event) {
  return static_cast<std::uint64_t>(event.action) << 60 ^ event.size_bytes;
}
bool IsOfBlock(const trace::Event& event) { return event.action <= trace::Action::kFreeCompleted; }

class BlockEvents final : public trace::EventSink {
 public:
  void OnEvent(const trace::Event& event, std::uint64_t) override {
    if (IsOfBlock(event)) prints.push_back(PrintOf(event));
  }
  std::vector<std::uint64_t> prints;
};

std::string JudgeThreads(const trace::Snapshot& read, std::size_t live) {
  device::SimDevice device(EndlessDevice());
  core::CachingAllocator allocator(&device, {});
  Program program(allocator, live);
  BlockEvents all;
  allocator.SetSink(&all);
  for (std::int64_t i = 0; i < kPairs; ++i) program.Pair();
  std::vector<std::vector<std::uint64_t>> prints(kThreads);
  for (const trace::Event& event : read.device_traces.at(0)) {
    if (IsOfBlock(event)) prints.at(Handle(event.stream)).push_back(PrintOf(event));
  }
  for (std::uint64_t i = 0; i < kThreads; ++i) {
    if (prints[i] != all.prints) return absl::StrCat("the events of stream ", i, " are other ones");
  }
  return "";
}

void BM_TwoThreads(benchmark::State& state, Mode mode, std::size_t live) {
  const std::string path = absl::StrCat("/tmp/ashlar_recorder_bench_", getpid());
  for (auto _ : state) {
    device::SimDevice device(EndlessDevice());
    core::CachingAllocator allocator(&device, {});
    EmptySink empty;
    std::vector<std::unique_ptr<Program>> programs;
    for (std::uint64_t i = 0; i < kThreads; ++i) {
      programs.push_back(std::make_unique<Program>(allocator, live, Stream{i}));
    }
    std::unique_ptr<core::Recorder> recorder;
    if (mode == kEmptySink) allocator.SetSink(&empty);
    if (mode == kFile) recorder = *core::Recorder::ToFile(&allocator, path, {.overwrites = true});
    std::atomic<std::uint64_t> ready{0};
    std::atomic<std::int64_t> nanoseconds{0};
    std::vector<std::thread> threads;
    for (std::uint64_t i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        Program& program = *programs[i];
        ++ready;
        while (ready < kThreads) std::this_thread::yield();
        const std::int64_t begin = ThreadNanoseconds();
        for (std::int64_t pair = 0; pair < kPairs; ++pair) program.Pair();
        nanoseconds += ThreadNanoseconds() - begin;
      });
    }
    for (std::thread& thread : threads) thread.join();
    state.SetIterationTime(static_cast<double>(nanoseconds) / kThreads / kPairs * 1e-9);
    if (recorder == nullptr) {
      allocator.SetSink(nullptr);
      continue;
    }
    const absl::Status status = recorder->Finish();
    const absl::StatusOr<trace::Snapshot> read = trace::Decode(BytesOf(path));
    const std::string wrong = !status.ok() ? std::string(status.message())
                              : !read.ok() ? std::string(read.status().message())
                                           : JudgeThreads(*read, live);
    if (!wrong.empty()) state.SkipWithError(absl::StrCat("wrong answer: ", wrong).c_str());
    std::remove(path.c_str());
  }
}

void Register() {
  const struct {
    const char* name;
    Mode mode;
  } modes[] = {{"no_sink", kNoSink}, {"empty_sink", kEmptySink}, {"ring", kRing}, {"file", kFile}};
  for (const std::size_t live : {std::size_t{1}, std::size_t{1000}}) {
    for (const auto& [name, mode] : modes) {
      benchmark::RegisterBenchmark(absl::StrCat(live == 1 ? "ping_pong/" : "steady_1000/", name).c_str(),
                                   [mode = mode, live](benchmark::State& state) { BM_Pairs(state, mode, live); })
          ->Iterations(kPairs);
    }
    for (const auto& [name, mode] : modes) {
      if (mode == kRing) continue;
      benchmark::RegisterBenchmark(
          absl::StrCat("two_threads/", live == 1 ? "ping_pong/" : "steady_1000/", name).c_str(),
          [mode = mode, live](benchmark::State& state) { BM_TwoThreads(state, mode, live); })
          ->UseManualTime()
          ->Iterations(5);
    }
  }
}

}  // namespace
}  // namespace ashlar::bench

int main(int argc, char** argv) {
  std::thread([] {}).join();  // glibc's locks are cheaper in a process that never had a second thread
  ashlar::bench::Register();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
