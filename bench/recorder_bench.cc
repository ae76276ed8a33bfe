// What recording costs: allocate and free pairs without a sink, with a sink that does nothing (the one lock that any
// sink needs), with a ring, and with a file. A pair is three events (alloc, free_requested, free_completed), so that
// the recorder's own cost is (ring or file - empty sink) / 3 an event. After each run the recording is read back: it
// must hold every event, and the last of them must be those that an empty sink saw in the same program.
#include <benchmark/benchmark.h>
#include <unistd.h>

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
  Program(core::CachingAllocator& allocator, std::size_t live) : allocator_(allocator) {
    for (std::size_t i = 0; i < live; ++i) blocks_.push_back(*allocator_.Allocate(Size(), Stream{0}));
  }
  void Pair() {
    core::Block*& block = blocks_[blocks_.size() == 1 ? 0 : rng_.Below(blocks_.size())];
    allocator_.Free(block);
    block = *allocator_.Allocate(Size(), Stream{0});
  }

 private:
  std::uint64_t Size() { return blocks_.size() <= 1 ? 64 * kKiB : RandomSize(rng_); }

  core::CachingAllocator& allocator_;
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
