// The analyzer's throughput: plain traces read and replayed, snapshots read.
//
//   parse/*          ParsePlainTrace: text to requests
//   replay/*/ours    the requests through RequestReplay, a new allocator and device each time
//   replay/*/set     the same requests through RivalSetEngine
//   whole/*/ours     both, as `ashlar replay` does: text to peak reserved bytes
//   snapshot/made    ReadTorchSnapshot of a snapshot of our own allocator with stacks, written by WriteTorchSnapshot
//   snapshot/file    the same of the file that the environment variable ASHLAR_BENCH_SNAPSHOT names
//   warm/*           the training trace, recorded with stacks: as PyTorch records it, and as our recorder does;
//   replayed as
//                    recorded, address by address (ReplayAsRecorded without making the program); items are events
//
// Every iteration's peak of reserved bytes must be the one the std::set engine comes to; every snapshot must give the
// number of events that were written (of a file: the same number each time, and not 0).
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/base/rng.h"
#include "allocator/core/caching_allocator.h"
#include "allocator/device/sim_device.h"
#include "analyzer/formats/input_file.h"
#include "analyzer/formats/plain/plain_trace.h"
#include "analyzer/formats/torch/torch_snapshot.h"
#include "analyzer/replay/recorded_replay.h"
#include "analyzer/replay/request_replay.h"
#include "analyzer/replay/snapshot_program.h"
#include "analyzer/replay/warm_replay.h"
#include "bench/endless_device.h"
#include "bench/request_traces.h"
#include "bench/rival_set_engine.h"

namespace ashlar::bench {
namespace {

std::int64_t ReplayOnOurs(const trace::RequestTrace& trace) {
  replay::RequestReplay replay({.policy = {}, .device = EndlessDevice(), .memory_fraction = {}});
  if (!replay.Run(trace).ok()) return -1;
  return replay.allocator().stats().reserved_bytes.all().peak;
}

// The traces hold allocations and frees only.
std::int64_t ReplayOnSet(const trace::RequestTrace& trace) {
  RivalSetEngine engine;
  std::vector<std::uint64_t> addresses(trace.id_count);
  for (const trace::Op& request : trace.requests) {
    if (request.kind == trace::OpKind::kAlloc) {
      addresses[request.id] = engine.Allocate(request.bytes, request.stream);
    } else {
      engine.Free(addresses[request.id]);
    }
  }
  return engine.peak_reserved_bytes();
}

struct Input {
  std::string text;
  trace::RequestTrace trace;
  std::int64_t peak_bytes = 0;  // by the std::set engine
};

Input MakeInput(std::string text) {
  Input input;
  input.text = std::move(text);
  input.trace = *formats::ParsePlainTrace(input.text);
  input.peak_bytes = ReplayOnSet(input.trace);
  return input;
}

const Input& Training() {
  static const Input input = MakeInput(TrainingTrace(TraceLines()));
  return input;
}
const Input& Random() {
  static const Input input = MakeInput(RandomTrace(TraceLines()));
  return input;
}

using InputFunction = const Input& (*)();

void CountLines(benchmark::State& state, const Input& input) {
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * input.trace.requests.size()));
}

void Parse(benchmark::State& state, InputFunction input_of) {
  const Input& input = input_of();
  for (auto _ : state) {
    const absl::StatusOr<trace::RequestTrace> trace = formats::ParsePlainTrace(input.text);
    const bool is_right = trace.ok() && trace->requests.size() == TraceLines() && trace->id_count > 0;
    if (!is_right) state.SkipWithError("wrong answer: not every line became a request");
    if (!is_right) break;
  }
  CountLines(state, input);
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * input.text.size()));
}

template <typename Replay>
void CheckedReplay(benchmark::State& state, const Input& input, Replay replay) {
  for (auto _ : state) {
    if (replay() == input.peak_bytes) continue;
    state.SkipWithError("wrong answer: another peak than the std::set engine's");
    break;
  }
  CountLines(state, input);
}

void OursReplay(benchmark::State& state, InputFunction input_of) {
  const Input& input = input_of();
  CheckedReplay(state, input, [&input] { return ReplayOnOurs(input.trace); });
}

void SetReplay(benchmark::State& state, InputFunction input_of) {
  const Input& input = input_of();
  CheckedReplay(state, input, [&input] { return ReplayOnSet(input.trace); });
}

void Whole(benchmark::State& state, InputFunction input_of) {
  const Input& input = input_of();
  CheckedReplay(state, input, [&input] {
    const absl::StatusOr<trace::RequestTrace> trace = formats::ParsePlainTrace(input.text);
    return trace.ok() ? ReplayOnOurs(*trace) : std::int64_t{-1};
  });
}

// Every event gets one of some hundred stacks of 30 frames.
class StackedEvents final : public trace::EventSink {
 public:
  explicit StackedEvents(trace::Snapshot* out) : out_(out) {
    for (int i = 0; i < 300; ++i) {
      std::vector<trace::FrameId> frames;
      for (int depth = 0; depth < 30; ++depth) {
        const std::uint64_t frame = rng_.Below(depth < 20 ? 40 : 400);
        frames.push_back(out_->stacks.InternFrame(absl::StrCat("/opt/model/layers/block_", frame, ".py"),
                                                  static_cast<std::int64_t>(frame), absl::StrCat("forward_", frame)));
      }
      stacks_.push_back(out_->stacks.InternStack(frames));
    }
  }

  void OnEvent(const trace::Event& event, std::uint64_t) override {
    trace::Event& made = out_->device_traces[0].Mutable().emplace_back(event);
    made.stack = stacks_[rng_.Below(stacks_.size())];
    made.time_us = 1'700'000'000'000'000 + static_cast<std::int64_t>(out_->device_traces[0].size()) * 7;
  }

 private:
  trace::Snapshot* out_;
  Rng rng_{5};
  std::vector<trace::StackId> stacks_;
};

struct Pickle {
  std::string bytes;
  std::size_t event_count = 0;
};

Pickle MakePickle() {
  trace::Snapshot snapshot;
  snapshot.device_traces.resize(1);
  StackedEvents sink(&snapshot);
  const trace::RequestTrace trace = *formats::ParsePlainTrace(RandomTrace(TraceLines() / 20));
  device::SimDevice device(EndlessDevice());
  core::CachingAllocator allocator(&device, {});
  allocator.SetSink(&sink);
  std::vector<core::Block*> blocks(trace.id_count);
  for (const trace::Op& request : trace.requests) {
    if (request.kind == trace::OpKind::kAlloc) {
      blocks[request.id] = *allocator.Allocate(request.bytes, request.stream);
    } else {
      allocator.Free(blocks[request.id]);
    }
  }
  snapshot.segments = allocator.Segments();
  return {formats::WriteTorchSnapshot(snapshot), snapshot.device_traces[0].size()};
}

std::size_t EventCount(const absl::StatusOr<trace::Snapshot>& snapshot) {
  std::size_t count = 0;
  if (!snapshot.ok()) return count;
  for (const trace::EventList& events : snapshot->device_traces) count += events.size();
  return count;
}

void ReadPickle(benchmark::State& state, const Pickle& pickle) {
  for (auto _ : state) {
    const absl::StatusOr<trace::Snapshot> snapshot = formats::ReadTorchSnapshot(pickle.bytes);
    if (pickle.event_count > 0 && EventCount(snapshot) == pickle.event_count) continue;
    state.SkipWithError("wrong answer: another number of events");
    break;
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * pickle.bytes.size()));
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * pickle.event_count));
}

void SnapshotMade(benchmark::State& state) {
  static const Pickle pickle = MakePickle();
  ReadPickle(state, pickle);
}

void SnapshotFile(benchmark::State& state) {
  static const absl::StatusOr<std::string> bytes = formats::ReadInput(std::getenv("ASHLAR_BENCH_SNAPSHOT"));
  if (!bytes.ok()) {
    state.SkipWithError("ASHLAR_BENCH_SNAPSHOT cannot be read");
    return;
  }
  static const Pickle pickle{*bytes, EventCount(formats::ReadTorchSnapshot(*bytes))};
  ReadPickle(state, pickle);
}

struct Recorded {
  trace::Snapshot snapshot;
  policy::Options options;
  replay::SnapshotProgram program;
};

Recorded MakeRecorded(bool is_recording) {
  Recorded out;
  out.snapshot =
      *replay::RecordRequests(Training().trace, {.policy = {}, .device = EndlessDevice(), .memory_fraction = {}});
  trace::Snapshot stacked;
  StackedEvents sink(&stacked);
  stacked.device_traces.resize(1);
  for (const trace::Event& event : out.snapshot.device_traces[0]) sink.OnEvent(event, 0);
  out.snapshot.device_traces = std::move(stacked.device_traces);
  out.snapshot.stacks = std::move(stacked.stacks);
  if (!is_recording) out.snapshot.recording.reset();
  replay::RecordedReplay replayed = *replay::ReplayAsRecorded(out.snapshot, 0);
  out.options = std::move(replayed.options);
  out.program = std::move(replayed.program);
  return out;
}

void Warm(benchmark::State& state, const Recorded& recorded) {
  for (auto _ : state) {
    const absl::StatusOr<replay::WarmReplay> replay =
        replay::RunWarmReplay(recorded.snapshot, recorded.program, recorded.options);
    if (replay.ok() && replay->fidelity.IsExact() && replay->fidelity.total > 0) continue;
    state.SkipWithError("wrong answer: not every allocation landed where it was recorded");
    break;
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * EventCount(recorded.snapshot)));
}

void WarmSnapshot(benchmark::State& state) {
  static const Recorded recorded = MakeRecorded(/*is_recording=*/false);
  Warm(state, recorded);
}

void WarmRecording(benchmark::State& state) {
  static const Recorded recorded = MakeRecorded(/*is_recording=*/true);
  Warm(state, recorded);
}

void RegisterAll() {
  using Registered = void (*)(benchmark::State&, InputFunction);
  const auto add = [](const std::string& name, Registered function, InputFunction input) {
    benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
      function(state, input);
    })->Unit(benchmark::kMillisecond);
  };
  for (const auto& [name, input] : {std::pair<const char*, InputFunction>{"training", Training}, {"random", Random}}) {
    add(absl::StrCat("parse/", name), Parse, input);
    add(absl::StrCat("replay/", name, "/ours"), OursReplay, input);
    add(absl::StrCat("replay/", name, "/set"), SetReplay, input);
    add(absl::StrCat("whole/", name, "/ours"), Whole, input);
  }
  benchmark::RegisterBenchmark("snapshot/made", SnapshotMade)->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark("warm/snapshot", WarmSnapshot)->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark("warm/recording", WarmRecording)->Unit(benchmark::kMillisecond);
  if (std::getenv("ASHLAR_BENCH_SNAPSHOT") == nullptr) return;
  benchmark::RegisterBenchmark("snapshot/file", SnapshotFile)->Unit(benchmark::kMillisecond);
}

}  // namespace
}  // namespace ashlar::bench

int main(int argc, char** argv) {
  // glibc leaves out atomic operations while a process has had one thread only.
  std::thread([] {}).join();
  ashlar::bench::RegisterAll();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
