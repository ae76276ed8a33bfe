// What is foretold for a device of another size, against what the same program has when it runs there. A program
// empties its cache in some steps; where room is scarce the allocator returns it by itself as well. The twin must keep
// the one and find the other anew.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "allocator/base/rng.h"
#include "analyzer/replay/recorded_replay.h"
#include "analyzer/timeline/observed.h"
#include "analyzer/whatif/what_if.h"
#include "analyzer/whatif/what_if_input.h"
#include "tests/analyzer/replay/recorder.h"

namespace ashlar::replay {
namespace {

using policy::Compat;

constexpr std::uint64_t kAmple = 16 * kGiB;
constexpr std::uint64_t kGrain = 2 * kMiB;

class StepProgram {
 public:
  explicit StepProgram(std::uint64_t seed) : rng_(seed) {}

  Program Make() {
    for (int step = 0; step < 8; ++step) AddStep();
    return std::move(program_);
  }

 private:
  void AddStep() {
    if (rng_.Below(2) == 0) program_.ops.push_back({.kind = OpKind::kEmptyCache});
    std::vector<std::uint32_t> live;
    for (std::uint64_t left = 10 + rng_.Below(30); left > 0; --left) live.push_back(Allocate());
    for (const std::uint32_t id : live) {
      if (rng_.Below(20) > 0) program_.ops.push_back({.kind = OpKind::kFree, .id = id});
    }
  }

  std::uint32_t Allocate() {
    const std::uint64_t bytes = rng_.Below(4) == 0 ? rng_.Between(512, kMiB) : rng_.Between(kMiB, 60 * kMiB);
    program_.ops.push_back({.kind = OpKind::kAlloc, .id = next_id_, .bytes = bytes});
    return next_id_++;
  }

  Rng rng_;
  Program program_;
  std::uint32_t next_id_ = 0;
};

// One that neither always nor never has to return its cache.
std::uint64_t ScarceBytes(Program program) {
  program.capacity_bytes = kAmple;
  const core::Stats stats = Record(program).stats;
  const auto held = static_cast<std::uint64_t>(stats.allocated_bytes.all().peak);
  const auto reserved = static_cast<std::uint64_t>(stats.reserved_bytes.all().peak);
  return (held + 3 * reserved) / 4 / kGrain * kGrain;
}

// As PyTorch records stacks: a request's events have its stack, what the call that empties returns has that call's.
void AddStacks(const Program& program, const Recording& recording, trace::Snapshot& snapshot) {
  std::vector<trace::Event>& events = snapshot.device_traces.front().Mutable();
  for (std::size_t op = 0; op < program.ops.size(); ++op) {
    const std::size_t end = op + 1 < program.ops.size() ? recording.first_events[op + 1] : events.size();
    const bool is_call = program.ops[op].kind == OpKind::kEmptyCache;
    for (std::size_t i = recording.first_events[op]; i < end; ++i) events[i].stack = is_call ? 0 : 1;
  }
}

std::optional<whatif::WhatIfRow> Foretold(const trace::Snapshot& snapshot, std::uint64_t capacity_bytes) {
  absl::StatusOr<RecordedReplay> recorded =
      ReplayAsRecorded(snapshot, 0, {.compat = Compat::kTorch210, .free_order = policy::FreeOrder::kAddress});
  EXPECT_TRUE(recorded.ok()) << recorded.status();
  EXPECT_TRUE(recorded->warm.fidelity.IsExact());
  const timeline::Timeline observed = std::exchange(recorded->observed, {});
  const whatif::WhatIfInput input = whatif::InputOf(
      *recorded, observed,
      {.capacity_bytes = capacity_bytes, .segment_addresses = device::AddressOrder::kAscending, .threads = 1});
  const auto row = whatif::RunWhatIf(input.requests, input.settings, input.settings.baseline);
  EXPECT_TRUE(row.ok()) << row.status();
  return *row;
}

struct Tried {
  std::uint64_t retries = 0;  // in the runs that were recorded, and in those foretold
  std::uint64_t foretold_retries = 0;
  std::uint64_t calls = 0;
};

void Compare(Program program, std::uint64_t from_bytes, std::uint64_t to_bytes, bool has_stacks, Tried& tried) {
  program.capacity_bytes = from_bytes;
  const Recording recording = Record(program);
  if (recording.stats.num_ooms > 0) return;  // it would have ended there
  trace::Snapshot snapshot = MakeSnapshot(recording, {});
  if (has_stacks) AddStacks(program, recording, snapshot);
  const std::optional<whatif::WhatIfRow> row = Foretold(snapshot, to_bytes);
  program.capacity_bytes = to_bytes;
  const core::Stats rerun = Record(program).stats;
  EXPECT_EQ(row->peak_reserved_bytes, static_cast<std::uint64_t>(rerun.reserved_bytes.all().peak)) << ToCpp(program);
  EXPECT_EQ(row->retries, rerun.num_alloc_retries) << ToCpp(program);
  EXPECT_EQ(row->ooms, rerun.num_ooms) << ToCpp(program);
  tried.retries += recording.stats.num_alloc_retries;
  tried.foretold_retries += rerun.num_alloc_retries;
  tried.calls += static_cast<std::uint64_t>(std::count_if(program.ops.begin(), program.ops.end(),
                                                          [](const Op& op) { return op.kind == OpKind::kEmptyCache; }));
}

TEST(RerunTest, AnotherDeviceHasWhatWasForetold) {
  Tried tried;
  for (std::uint64_t seed = 0; seed < 60 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    const Program program = StepProgram(seed).Make();
    const std::uint64_t scarce = ScarceBytes(program);
    Compare(program, kAmple, scarce, /*has_stacks=*/true, tried);
    Compare(program, scarce, kAmple, /*has_stacks=*/true, tried);
  }
  EXPECT_GT(tried.retries, 20u);
  EXPECT_GT(tried.foretold_retries, 20u);
  EXPECT_GT(tried.calls, 100u);
}

// Without stacks: a step that empties the cache and asks for what was in it, and a capture's pool, which the cache
// would not have served but for which there was room.
TEST(RerunTest, CallsAreToldFromRetriesWithoutStacks) {
  Program program;
  std::uint32_t id = 0;
  const auto allocate = [&](std::uint64_t bytes, std::uint64_t pool = 0) {
    program.ops.push_back({.kind = OpKind::kAlloc, .id = id, .bytes = bytes, .pool = pool});
    return id++;
  };
  const auto free = [&](std::uint32_t of) { program.ops.push_back({.kind = OpKind::kFree, .id = of}); };
  for (int step = 0; step < 4; ++step) {
    program.ops.push_back({.kind = OpKind::kEmptyCache});
    const std::uint32_t a = allocate(40 * kMiB), b = allocate(90 * kMiB), c = allocate(30 * kMiB);
    for (const std::uint32_t of : {a, b, c}) free(of);
  }
  program.ops.push_back({.kind = OpKind::kEmptyCache});
  allocate(50 * kMiB, 1);
  free(allocate(300 * kMiB));
  Tried tried;
  Compare(program, kAmple, kAmple, /*has_stacks=*/false, tried);
  Compare(program, kAmple, 360 * kMiB, /*has_stacks=*/false, tried);
}

}  // namespace
}  // namespace ashlar::replay
