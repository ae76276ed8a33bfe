// What a program pays for its requests once its memory is there: the requests of recorded programs in a loop, by
// setting.
//
//   program_loop run.trace ...            each a request trace (`ashlar convert run.pickle run.trace`)
//   program_loop                          a made-up training run
//
//   loop/FILE/set                         RivalSetEngine, by address
//   loop/FILE/SETTING/by_address          ours
//   loop/FILE/SETTING/by_block
//
// Items are pairs of an allocation and its free, so that time / items is the cost of a pair. Each pass frees at its end
// what the program had not. Every pass must serve every request and leave nothing behind, and the allocator's peak of
// requested bytes must be the trace's own. Requests of other streams count as the first one's.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/core/caching_allocator.h"
#include "allocator/device/sim_device.h"
#include "analyzer/formats/input_file.h"
#include "analyzer/formats/plain/plain_trace.h"
#include "bench/endless_device.h"
#include "bench/request_traces.h"
#include "bench/rival_set_engine.h"

namespace ashlar::bench {
namespace {

constexpr const char* kSettings[] = {"", "expandable_segments:True", "policy:ashlar"};

struct Program {
  std::string name;
  std::vector<trace::Op> ops;  // allocations and frees, each allocation with its free
  std::uint32_t id_count = 0;
  std::int64_t peak_bytes = 0;  // requested

  std::int64_t pairs() const { return static_cast<std::int64_t>(ops.size() / 2); }
};

Program ProgramOf(std::string name, const trace::RequestTrace& trace) {
  Program out{.name = std::move(name), .ops = {}, .id_count = trace.id_count};
  std::vector<std::uint64_t> live(trace.id_count);
  std::int64_t bytes = 0;
  for (const trace::Op& op : trace.requests) {
    if (op.kind == trace::OpKind::kAlloc) {
      live[op.id] = op.bytes;
      bytes += static_cast<std::int64_t>(op.bytes);
    } else if (op.kind == trace::OpKind::kFree) {
      bytes -= static_cast<std::int64_t>(std::exchange(live[op.id], 0));
    } else {
      continue;
    }
    out.peak_bytes = std::max(out.peak_bytes, bytes);
    out.ops.push_back(op);
  }
  for (std::uint32_t id = 0; id < trace.id_count; ++id) {
    if (live[id] > 0) out.ops.push_back({.id = id, .kind = trace::OpKind::kFree});
  }
  return out;
}

// One pass; false: a request was not served.
template <typename Handle, typename Allocate, typename Free>
bool Pass(const Program& program, std::vector<Handle>& handles, Allocate allocate, Free free) {
  for (const trace::Op& op : program.ops) {
    if (op.kind == trace::OpKind::kFree) {
      free(handles[op.id]);
    } else if (!allocate(op.bytes, handles[op.id])) {
      return false;
    }
  }
  return true;
}

template <typename Handle, typename Allocate, typename Free>
void Ours(benchmark::State& state, const Program& program, const char* setting, Allocate allocate, Free free) {
  device::SimDevice device(EndlessDevice());
  core::CachingAllocator allocator(&device,
                                   *policy::ParseConf(setting, policy::Compat::kTorch210, policy::Keys::kAshlar));
  std::vector<Handle> handles(program.id_count);
  bool is_served = true;
  for (auto _ : state) {
    is_served &= Pass(
        program, handles, [&](std::uint64_t bytes, Handle& out) { return allocate(allocator, bytes, out); },
        [&](Handle of) { free(allocator, of); });
  }
  const core::Stats stats = allocator.stats();
  const auto& requested = stats.requested_bytes.all();
  if (!is_served || requested.current != 0 || requested.peak != program.peak_bytes) state.SkipWithError("wrong answer");
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * program.pairs());
}

void ByAddress(benchmark::State& state, const Program& program, const char* setting) {
  Ours<std::uint64_t>(
      state, program, setting,
      [](core::CachingAllocator& allocator, std::uint64_t bytes, std::uint64_t& out) {
        const absl::StatusOr<std::uint64_t> address = allocator.AllocateAddress(bytes, Stream{0});
        if (address.ok()) out = *address;
        return address.ok();
      },
      [](core::CachingAllocator& allocator, std::uint64_t address) { allocator.FreeAddress(address); });
}

void ByBlock(benchmark::State& state, const Program& program, const char* setting) {
  Ours<core::Block*>(
      state, program, setting,
      [](core::CachingAllocator& allocator, std::uint64_t bytes, core::Block*& out) {
        const absl::StatusOr<core::Block*> block = allocator.Allocate(bytes, Stream{0});
        if (block.ok()) out = *block;
        return block.ok();
      },
      [](core::CachingAllocator& allocator, core::Block* block) { allocator.Free(block); });
}

void BySet(benchmark::State& state, const Program& program) {
  RivalSetEngine engine;
  std::vector<std::uint64_t> addresses(program.id_count);
  for (auto _ : state) {
    Pass(
        program, addresses,
        [&](std::uint64_t bytes, std::uint64_t& out) {
          out = engine.Allocate(bytes, Stream{0});
          return true;
        },
        [&](std::uint64_t address) { engine.Free(address); });
  }
  if (engine.requested_bytes() != 0) state.SkipWithError("wrong answer");
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * program.pairs());
}

void Register(const Program& program) {
  const auto add = [&program](const std::string& what, auto run) {
    benchmark::RegisterBenchmark(absl::StrCat("loop/", program.name, "/", what).c_str(), run);
  };
  add("set", [&program](benchmark::State& state) { BySet(state, program); });
  for (const char* setting : kSettings) {
    const std::string name = *setting == '\0' ? "default" : setting;
    add(name + "/by_address", [&program, setting](benchmark::State& state) { ByAddress(state, program, setting); });
    add(name + "/by_block", [&program, setting](benchmark::State& state) { ByBlock(state, program, setting); });
  }
}

int Main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  std::vector<std::unique_ptr<Program>> programs;
  for (int i = 1; i < argc; ++i) {
    const std::string path = argv[i];
    const absl::StatusOr<std::string> text = formats::ReadInput(path);
    const absl::StatusOr<trace::RequestTrace> trace =
        text.ok() ? formats::ParsePlainTrace(*text) : absl::StatusOr<trace::RequestTrace>(text.status());
    if (!trace.ok()) {
      std::fprintf(stderr, "program_loop: %s: %s\n", path.c_str(), std::string(trace.status().message()).c_str());
      return 1;
    }
    programs.push_back(std::make_unique<Program>(ProgramOf(path.substr(path.rfind('/') + 1), *trace)));
  }
  if (programs.empty()) {
    programs.push_back(
        std::make_unique<Program>(ProgramOf("training", *formats::ParsePlainTrace(TrainingTrace(TraceLines())))));
  }
  for (const auto& program : programs) Register(*program);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace
}  // namespace ashlar::bench

int main(int argc, char** argv) { return ashlar::bench::Main(argc, argv); }
