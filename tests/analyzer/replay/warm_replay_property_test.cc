// Random programs, recorded with a window that begins anywhere: the warm replay under the same settings must land
// every block where it was. Where the record does not hold what the replay needs, the case says so by name.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <ostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "analyzer/replay/warm_replay.h"
#include "tests/analyzer/replay/random_program.h"
#include "tests/analyzer/replay/recorder.h"
#include "tests/analyzer/replay/replayed_snapshot.h"

namespace ashlar::replay {
namespace {

using policy::Compat;

struct Case {
  const char* name;
  Compat compat;
  const char* conf;
  ProgramShape shape;
  std::uint64_t capacity_bytes = 16 * kGiB;
  std::optional<double> memory_fraction = {};
  bool has_pool_ids = true;
  bool can_cut = true;  // also exact when the window begins anywhere
  bool cuts_between_requests = false;
};
std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

// Empty when the replay is exact, else what went wrong.
std::string Judge(const Program& program, const Case& c, std::uint64_t cut_seed) {
  const Recording recording = Record(program);
  Rng rng(cut_seed);
  const std::size_t event_count = recording.events.size();
  std::size_t window = cut_seed == 0 ? event_count : rng.Below(event_count + 1);
  if (c.cuts_between_requests) {
    const auto& firsts = recording.first_events;
    window = event_count - *std::lower_bound(firsts.begin(), firsts.end(), event_count - window);
  }
  const trace::Snapshot snapshot = MakeSnapshot(recording, {.window = window, .has_pool_ids = c.has_pool_ids});
  const policy::Options options = program.Options();
  const absl::StatusOr<ReplayedSnapshot> replayed =
      ReplaySnapshot(snapshot, options, {.device_total_bytes = c.capacity_bytes});
  if (!replayed.ok()) return replayed.status().ToString();
  const Fidelity& fidelity = replayed->warm.fidelity;
  if (fidelity.IsExact() || replayed->program.start.unknown_tails > 0) return "";
  std::string text = absl::StrCat("allocations ", fidelity.matched, " of ", fidelity.total, ", segments ",
                                  fidelity.segments_matched, " of ", fidelity.segments_total, ", window ", window,
                                  " of ", recording.events.size(), "; ", fidelity.final_state_difference);
  if (fidelity.first_mismatch.has_value()) absl::StrAppend(&text, "; first at event ", fidelity.first_mismatch->event);
  return text;
}

class WarmReplayPropertyTest : public testing::TestWithParam<Case> {};

TEST_P(WarmReplayPropertyTest, IsExact) {
  const Case& c = GetParam();
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    Rng rng(seed);
    Program program{.compat = c.compat,
                    .conf = c.conf,
                    .capacity_bytes = c.capacity_bytes,
                    .address_order = static_cast<device::AddressOrder>(rng.Below(2)),
                    .memory_fraction = c.memory_fraction};
    AddRandomOps(c.shape, rng, program);
    const std::uint64_t cut_seed = c.can_cut && seed % 4 != 0 ? seed : 0;
    const auto fails = [&](const Program& p) { return !Judge(p, c, cut_seed).empty(); };
    if (!fails(program)) continue;
    const Program smallest = Shrink(program, fails);
    std::string events;
    for (const trace::Event& event : Record(smallest).events) {
      absl::StrAppend(&events, "  ", trace::ActionName(event.action), " 0x", absl::Hex(event.address), " ",
                      event.size_bytes, " stream ", Handle(event.stream), "\n");
    }
    FAIL() << "seed " << seed << " cut " << cut_seed << ": " << Judge(smallest, c, cut_seed) << "\n"
           << ToCpp(smallest) << events;
  }
}

constexpr std::uint64_t kTight = 160 * kMiB;

const Case kCases[] = {
    {"default26", Compat::kTorch26, "", {}},
    {"default210", Compat::kTorch210, "", {}},
    {"tight26", Compat::kTorch26, "", {}, kTight},
    {"max_split26", Compat::kTorch26, "max_split_size_mb:21", {}, 16 * kGiB, {}, true, true, true},
    {"max_split_tight26", Compat::kTorch26, "max_split_size_mb:32", {}, kTight},
    {"max_split_tight210", Compat::kTorch210, "max_split_size_mb:20", {}, kTight},
    {"roundup", Compat::kTorch26, "roundup_power2_divisions:4", {}},
    {"roundup_list", Compat::kTorch210, "roundup_power2_divisions:[1:8,4:4,>:2]", {}, kTight},
    {"streams", Compat::kTorch26, "", {.streams = 3, .record_stream_in_1000 = 200}},
    {"streams_tight", Compat::kTorch210, "", {.streams = 3, .record_stream_in_1000 = 200}, kTight},
    {"streams_max_split_tight",
     Compat::kTorch26,
     "max_split_size_mb:24",
     {.streams = 2, .empty_cache_in_1000 = 30, .record_stream_in_1000 = 200},
     kTight},
    {"pools", Compat::kTorch210, "", {.pools = 3}},
    {"pools_tight", Compat::kTorch210, "", {.pools = 3}, 2 * kTight},
    {"pools_released", Compat::kTorch210, "", {.pools = 3, .releases_pools = true, .empty_cache_in_1000 = 30}, kTight},
    {"pools_without_ids", Compat::kTorch210, "", {.pools = 3}, 16 * kGiB, {}, false},
    {"pools_without_ids_tight", Compat::kTorch210, "", {.pools = 3}, kTight, {}, false},
    {"overflow_pool", Compat::kTorchLatest, "", {.pools = 2, .has_overflow_pool = true}, kTight, {}, true, false},
    {"latest", Compat::kTorchLatest, "", {}, 16 * kGiB, {}, true, false},
    {"latest_tight", Compat::kTorchLatest, "large_segment_size_mb:12", {}, kTight, {}, true, false},
    {"gc", Compat::kTorch26, "garbage_collection_threshold:0.4", {}, 600 * kMiB, 0.9, true, false},
    {"gc_max_split_streams",
     Compat::kTorch210,
     "garbage_collection_threshold:0.5,max_split_size_mb:24",
     {.streams = 2, .record_stream_in_1000 = 150},
     300 * kMiB,
     0.9,
     true,
     false},
    {"throw_on",
     Compat::kTorchLatest,
     "throw_on_cudamalloc_oom:True,per_process_memory_fraction:1.0",
     {},
     kTight,
     {},
     true,
     false},
    {"expandable26", Compat::kTorch26, "expandable_segments:True", {}, 16 * kGiB, {}, true, false},
    {"expandable26_tight", Compat::kTorch26, "expandable_segments:True", {}, kTight, {}, true, false},
    {"expandable_streams",
     Compat::kTorch210,
     "expandable_segments:True",
     {.streams = 3, .empty_cache_in_1000 = 30, .record_stream_in_1000 = 100},
     kTight,
     {},
     true,
     false},
    {"expandable_pools", Compat::kTorchLatest, "expandable_segments:True", {.pools = 2}, 2 * kTight, {}, true, false},
};

INSTANTIATE_TEST_SUITE_P(Settings, WarmReplayPropertyTest, testing::ValuesIn(kCases),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace ashlar::replay
