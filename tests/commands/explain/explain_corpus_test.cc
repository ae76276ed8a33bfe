// Recorded files of real programs: the accounting holds to the byte at the start, at the peak and at the end, and every
// explanation is sound.
#include <string>
#include <vector>

#include "analyzer/analyses/state/state_accounting.h"
#include "analyzer/formats/input_file.h"
#include "analyzer/formats/torch/torch_snapshot.h"
#include "analyzer/replay/recorded_options.h"
#include "analyzer/timeline/observed.h"
#include "commands/explain/explain.h"
#include "gtest/gtest.h"
#include "tests/commands/printed.h"
#include "tests/corpus_files.h"
#include "tests/shared_dir.h"

namespace ashlar::tests {
namespace {

trace::Snapshot MustRead(const std::string& file) {
  const absl::StatusOr<std::string> bytes = formats::ReadInput(file);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  absl::StatusOr<trace::Snapshot> snapshot = formats::ReadTorchSnapshot(*bytes);
  EXPECT_TRUE(snapshot.ok()) << file << ": " << snapshot.status();
  return *std::move(snapshot);
}

// The parts, added up from the spans of the timeline: no state, no segment list, no helper of the product.
struct Parts {
  std::uint64_t reserved = 0, allocated = 0, pending = 0, holes = 0;
};

Parts FromSpans(const timeline::Timeline& timeline, timeline::EventIndex event) {
  Parts out;
  for (const timeline::SegmentSpan& segment : timeline.segments()) {
    if (!segment.ExistsAfter(event)) continue;
    std::uint64_t size_bytes = 0;
    for (const timeline::SegmentExtent& extent : segment.extents) {
      if (extent.event <= event) size_bytes = extent.size_bytes;
    }
    out.reserved += size_bytes;
  }
  for (const timeline::BlockSpan& block : timeline.blocks()) {
    if (block.IsLiveAfter(event)) {
      out.allocated += block.size_bytes;
    } else if (block.IsActiveAfter(event)) {
      out.pending += block.size_bytes;
    }
  }
  out.holes = out.reserved - out.allocated - out.pending;
  return out;
}

void ExpectAccounted(const timeline::Timeline& timeline, timeline::EventIndex event) {
  const core::Accounting parts = analyses::AccountState(timeline.StateAt(event));
  const Parts expected = FromSpans(timeline, event);
  EXPECT_EQ(parts.reserved_bytes, expected.reserved);
  EXPECT_EQ(parts.allocated_bytes, expected.allocated);
  EXPECT_EQ(parts.pending_bytes, expected.pending);
  EXPECT_EQ(parts.stranded_bytes + parts.whole_free_bytes + parts.private_pool_bytes, expected.holes);
  EXPECT_EQ(parts.SumOfParts(), parts.reserved_bytes);
  EXPECT_EQ(parts.reserved_bytes, timeline.TotalsAfter(event).reserved_bytes);
  if (parts.live_bytes.has_value()) {
    EXPECT_EQ(*parts.live_bytes + *parts.rounding_bytes, parts.allocated_bytes);
  }
}

// The end once more, from the file's own segments.
void ExpectEnd(const timeline::Timeline& timeline, const trace::Snapshot& snapshot) {
  std::uint64_t stranded = 0, whole_free = 0, pooled = 0;
  for (const trace::SnapshotSegment& segment : snapshot.segments) {
    if (segment.device != 0) continue;
    std::uint64_t free_bytes = 0;
    for (const trace::SnapshotBlock& block : segment.blocks) {
      if (block.state == trace::BlockState::kFree) free_bytes += block.size_bytes;
    }
    if (segment.pool.first != 0 || segment.pool.second != 0) {
      pooled += free_bytes;
    } else {
      (free_bytes == segment.size_bytes ? whole_free : stranded) += free_bytes;
    }
  }
  const core::Accounting parts = analyses::AccountState(timeline.StateAt(timeline.last_event()));
  EXPECT_EQ(parts.stranded_bytes, stranded);
  EXPECT_EQ(parts.whole_free_bytes, whole_free);
  EXPECT_EQ(parts.private_pool_bytes, pooled);
}

TEST(ExplainCorpusTest, EveryByteIsAccountedAtStartPeakAndEnd) {
  if (!SharedDir()) GTEST_SKIP() << kNoSharedDir;
  for (const std::string& file : SnapshotFiles()) {
    SCOPED_TRACE(file);
    const trace::Snapshot snapshot = MustRead(file);
    const absl::StatusOr<policy::Options> options = replay::RecordedOptions(snapshot, replay::GuessCompat(snapshot));
    ASSERT_TRUE(options.ok()) << options.status();
    const absl::StatusOr<timeline::Timeline> timeline =
        timeline::MakeObservedTimeline({snapshot, 0}, replay::SizeRuleOf(*options));
    ASSERT_TRUE(timeline.ok()) << timeline.status();
    ExpectAccounted(*timeline, timeline::kBeforeWindow);
    ExpectAccounted(*timeline, timeline->allocated_peak().event);
    ExpectAccounted(*timeline, timeline->reserved_peak().event);
    ExpectAccounted(*timeline, timeline->last_event());
    ExpectEnd(*timeline, snapshot);
  }
}

TEST(ExplainCorpusTest, EveryExplanationIsSound) {
  if (!SharedDir()) GTEST_SKIP() << kNoSharedDir;
  SchemaCheck schema(ExplainSchema());
  for (const std::string& file : SnapshotFiles()) {
    SCOPED_TRACE(file);
    const trace::Snapshot snapshot = MustRead(file);
    const absl::StatusOr<answers::Explanation> explanation = answers::ExplainSnapshot(snapshot, {});
    ASSERT_TRUE(explanation.ok()) << explanation.status();
    const nlohmann::json json = ExpectSound(*explanation, schema);
    if (!json["fidelity"].is_null()) {
      EXPECT_EQ(json["fidelity"]["matched"], json["fidelity"]["total"]);
    }
    // Without events nothing can be replayed, and the answer says so instead of a row of zeros.
    EXPECT_EQ(json["what_if"].empty(), json["fidelity"].is_null());
    EXPECT_FALSE(json["advice"].is_null());
    EXPECT_GT(json["accounting"]["reserved_bytes"], 0);
  }
}

// What PyTorch wrote of real runs of several releases, settings and failures.
TEST(ExplainCorpusTest, EveryCaptureIsExplainedWithoutContradiction) {
  if (!SharedDir()) GTEST_SKIP() << kNoSharedDir;
  for (const std::string& file : SnapshotFiles("captures")) {
    SCOPED_TRACE(file);
    const absl::StatusOr<answers::Explanation> explanation = answers::ExplainSnapshot(MustRead(file), {});
    ASSERT_TRUE(explanation.ok()) << explanation.status();
    ExpectNoContradiction(*explanation);
  }
}

}  // namespace
}  // namespace ashlar::tests
