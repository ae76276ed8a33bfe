// Traces that are not of one run, and traces of no run at all: refused by name, never a crash.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "analyzer/timeline/observed.h"
#include "tests/analyzer/replay/random_program.h"
#include "tests/analyzer/replay/recorder.h"
#include "tests/analyzer/replay/replayed_snapshot.h"

namespace ashlar::replay {
namespace {

using trace::Action;

Program Story() {
  Program program{.compat = policy::Compat::kTorch26};
  program.ops = {{.kind = OpKind::kAlloc, .id = 0, .bytes = 3 * kMiB},
                 {.kind = OpKind::kAlloc, .id = 1, .bytes = 4 * kMiB},
                 {.kind = OpKind::kFree, .id = 0},
                 {.kind = OpKind::kAlloc, .id = 2, .bytes = 30 * kMiB},
                 {.kind = OpKind::kFree, .id = 2},
                 {.kind = OpKind::kEmptyCache}};
  return program;
}

std::size_t Find(const trace::Snapshot& snapshot, Action action) {
  const std::vector<trace::Event>& events = snapshot.device_traces[0];
  std::size_t i = 0;
  while (events.at(i).action != action) ++i;
  return i;
}

void ExpectRefused(const trace::Snapshot& snapshot, const char* what) {
  const auto program = MakeProgram({snapshot, 0}, SizeRuleOf(Story().Options()));
  EXPECT_EQ(program.status().code(), absl::StatusCode::kFailedPrecondition) << what;
  const std::string message(program.status().message());
  EXPECT_NE(message.find("device 0, "), std::string::npos) << what << ": " << message;
  EXPECT_NE(message.find("0x7f"), std::string::npos) << what << ": " << message;
}

TEST(InconsistentTraceTest, TheStoryItselfIsExact) {
  const auto replayed = ReplaySnapshot(MakeSnapshot(Record(Story()), {}), Story().Options());
  ASSERT_TRUE(replayed.ok()) << replayed.status();
  EXPECT_TRUE(replayed->warm.fidelity.IsExact());
  EXPECT_EQ(replayed->warm.fidelity.total, 3u);
}

TEST(InconsistentTraceTest, NamesTheEventThatCannotBe) {
  const trace::Snapshot good = MakeSnapshot(Record(Story()), {});
  trace::Snapshot bad = good;
  auto* events = &bad.device_traces[0].Mutable();
  // Of the last block placed there: an earlier window would explain a lost first one.
  events->erase(events->begin() + static_cast<std::ptrdiff_t>(Find(bad, Action::kSegmentFree)) - 3);
  ExpectRefused(bad, "an alloc is missing");

  bad = good;
  events = &bad.device_traces[0].Mutable();
  const std::size_t freed = Find(bad, Action::kFreeRequested);
  events->insert(events->begin() + static_cast<std::ptrdiff_t>(freed) + 2, (*events)[freed]);
  ExpectRefused(bad, "a block is freed twice");

  bad = good;
  bad.segments.clear();
  ExpectRefused(bad, "the segments are missing");

  bad = good;
  bad.device_traces[0].Mutable()[Find(bad, Action::kFreeCompleted)].size_bytes += 512;
  ExpectRefused(bad, "a size is another one");
}

std::uint64_t Hostile(Rng& rng) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  const std::uint64_t values[] = {0,
                                  1,
                                  511,
                                  512,
                                  kMiB,
                                  2 * kMiB,
                                  20 * kMiB,
                                  kGiB,
                                  kMost,
                                  kMost - 511,
                                  kMost / 2,
                                  std::uint64_t{1} << 62,
                                  std::uint64_t{1} << 60,
                                  std::uint64_t{1} << 47};
  return values[rng.Below(std::size(values))];
}

// Another value: hostile, or near.
void Spoil(std::uint64_t& value, Rng& rng) {
  switch (rng.Below(4)) {
    case 0:
      value = Hostile(rng);
      return;
    case 1:
      value += 512;
      return;
    case 2:
      value ^= std::uint64_t{1} << rng.Below(64);
      return;
    default:
      value -= 2 * kMiB;
  }
}

void SpoilEvent(std::vector<trace::Event>& events, Rng& rng) {
  if (events.empty()) return;
  const std::size_t index = rng.Below(events.size());
  const auto at = events.begin() + static_cast<std::ptrdiff_t>(index);
  switch (rng.Below(7)) {
    case 0:
      events.erase(at);
      return;
    case 1: {
      const trace::Event copy = *at;
      events.insert(events.begin() + static_cast<std::ptrdiff_t>(rng.Below(events.size() + 1)), copy);
      return;
    }
    case 2:
      return Spoil(at->address, rng);
    case 3:
      return Spoil(at->size_bytes, rng);
    case 4:
      at->action = static_cast<Action>(rng.Below(static_cast<std::uint64_t>(Action::kUnknown) + 1));
      return;
    case 5:
      at->stream = Stream{rng.Below(2) == 0 ? rng.Below(4) : Hostile(rng)};
      return;
    default:
      at->pool = PoolId{0, rng.Below(3)};
  }
}

void SpoilSegment(std::vector<trace::SnapshotSegment>& segments, Rng& rng) {
  if (segments.empty()) return;
  const std::size_t index = rng.Below(segments.size());
  trace::SnapshotSegment& segment = segments[index];
  switch (rng.Below(7)) {
    case 0:
      segments.erase(segments.begin() + static_cast<std::ptrdiff_t>(index));
      return;
    case 1:
      return Spoil(segment.address, rng);
    case 2:
      return Spoil(segment.size_bytes, rng);
    case 3:
      segment.is_expandable = !segment.is_expandable;
      return;
    case 4:
      segment.is_small_pool = !segment.is_small_pool;
      return;
    default:
      break;
  }
  if (segment.blocks.empty()) return;
  trace::SnapshotBlock& block = segment.blocks[rng.Below(segment.blocks.size())];
  switch (rng.Below(4)) {
    case 0:
      return Spoil(block.address, rng);
    case 1:
      return Spoil(block.size_bytes, rng);
    case 2:
      block.requested_bytes = Hostile(rng);
      return;
    default:
      block.state = static_cast<trace::BlockState>(rng.Below(3));
  }
}

// Whatever a file says, there is an answer or a status.
void ReplaySpoiled(const char* conf, std::uint64_t first_seed) {
  for (std::uint64_t seed = first_seed; seed < first_seed + 1500; ++seed) {
    Rng rng(seed);
    Program program{.compat = policy::Compat::kTorch210, .conf = conf, .capacity_bytes = 160 * kMiB};
    AddRandomOps({.op_count = 30, .streams = 2, .pools = 2, .empty_cache_in_1000 = 60, .record_stream_in_1000 = 100},
                 rng, program);
    const Recording recording = Record(program);
    trace::Snapshot snapshot =
        MakeSnapshot(recording, {.window = rng.Below(recording.events.size() + 1), .has_pool_ids = rng.Below(2) == 0});
    for (std::uint64_t i = 1 + rng.Below(3); i > 0; --i) {
      rng.Below(2) == 0 ? SpoilEvent(snapshot.device_traces[0].Mutable(), rng) : SpoilSegment(snapshot.segments, rng);
    }
    SCOPED_TRACE(seed);
    const policy::Options options = program.Options();
    const auto observed = timeline::MakeObservedTimeline({snapshot, 0}, SizeRuleOf(options));
    const auto replayed = ReplaySnapshot(snapshot, options);
    if (!observed.ok()) {
      EXPECT_FALSE(replayed.ok());
      EXPECT_EQ(observed.status().code(), absl::StatusCode::kFailedPrecondition) << observed.status();
    }
    if (replayed.ok()) {
      EXPECT_TRUE(replayed->warm.timeline.Validate().ok());
    }
  }
}

TEST(InconsistentTraceTest, SpoiledSnapshotsNeverCrash) { ReplaySpoiled("", 1); }
TEST(InconsistentTraceTest, SpoiledExpandableSnapshotsNeverCrash) { ReplaySpoiled("expandable_segments:True", 10'001); }
TEST(InconsistentTraceTest, SpoiledSnapshotsOfPagesNeverCrash) { ReplaySpoiled("policy:ashlar", 30'001); }
TEST(InconsistentTraceTest, SpoiledOversizeSnapshotsNeverCrash) {
  ReplaySpoiled("max_split_size_mb:24,garbage_collection_threshold:0.5", 20'001);
}

}  // namespace
}  // namespace ashlar::replay
