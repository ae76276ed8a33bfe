// Random programs with a tuner that switches whenever it looks: what is recorded replays to the bit, switches and all.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/base/rng.h"
#include "allocator/core/recorder.h"
#include "allocator/trace/codec.h"
#include "ashlar/tuner.h"
#include "tests/allocator/core/locked_device.h"
#include "tests/allocator/core/recorded_file.h"
#include "tests/allocator/core/threads_worker.h"

namespace ashlar::core {
namespace {

class TunedRandomTest : public testing::TestWithParam<const char*> {};

TEST_P(TunedRandomTest, WhatIsRecordedReplays) {
  int switches = 0;
  for (std::uint64_t seed = 1; seed <= 12 && !HasFailure(); ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Rng rng(seed);
    LockedDevice device({.capacity_bytes = rng.Between(100, 400) * kMiB});
    CachingAllocator allocator(&device, Options(GetParam()));
    Clock clock;
    Mailbox mail;
    std::vector<Worker> workers;
    for (int i = 0; i < 3; ++i) workers.emplace_back(i, rng.Below(1 << 30), allocator, device, clock, mail);
    const std::uint64_t ring_bytes = rng.Below(2) == 0 ? kMiB : 8 * kKiB;
    const std::unique_ptr<Recorder> ring = *Recorder::Ring(&allocator, {.ring_bytes = ring_bytes, .chunk_bytes = 1024});
    TunerOptions options;
    options.may_switch = true;
    options.may_borrow = true;
    options.least_gain = 0.01;
    options.pause = std::chrono::milliseconds(0);
    options.on_decision = [&](const TunerDecision& decision) {
      switches += decision.kind == TunerDecision::Kind::kSwitched ? 1 : 0;
    };
    Tuner tuner({[&] { return ring->Bytes(); }, [&] { return ring->event_count(); },
                 [&](const std::string& conf) { return allocator.ChangeSettings(conf); }},
                options);
    for (int step = 0; step < 16; ++step) {
      for (std::uint64_t i = rng.Between(5, 60); i > 0; --i) workers[rng.Below(workers.size())].RunSteps(1);
      tuner.StepEnded();
      if (rng.Below(4) != 0) continue;
      tuner.Look();
      ASSERT_NE(tuner.last().kind, TunerDecision::Kind::kFailed) << tuner.last().text;
      ASSERT_EQ(allocator.Validate(), absl::OkStatus());
    }
    const absl::StatusOr<trace::Snapshot> read = trace::Decode(*ring->Bytes());
    ASSERT_TRUE(read.ok()) << read.status();
    ExpectReplaysExactly(*read);
  }
  EXPECT_GT(switches, 0);
}

INSTANTIATE_TEST_SUITE_P(Settings, TunedRandomTest,
                         testing::Values("", "max_split_size_mb:21", "compat:torch-latest", "search_after_sync:True"),
                         [](const auto& tested) { return absl::StrCat("conf_", tested.index); });

}  // namespace
}  // namespace ashlar::core
