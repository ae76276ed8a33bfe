// Random histories with known truth, cut at a random place: the rewound start must be the truth at the cut, and the
// observed timeline must be the truth after every event. A failure prints itself as a story to paste into a test.
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "analyzer/timeline/observed.h"
#include "analyzer/timeline/rewind.h"
#include "gtest/gtest.h"
#include "tests/analyzer/timeline/model_allocator.h"
#include "tests/analyzer/timeline/story.h"

namespace ashlar::timeline {
namespace {

std::string Hex(std::uint64_t address) { return absl::StrCat("0x", absl::Hex(address)); }

std::string AsCall(const trace::Event& event) {
  return absl::StrCat("    {", trace::ActionName(event.action), ", ", Hex(event.address), ", ", event.size_bytes,
                      ", stream ", Handle(event.stream), "},\n");
}

// The start, the window and the end, for people.
std::string Print(const ModelAllocator& model, std::size_t cut) {
  std::string text;
  for (const std::size_t moment : {cut, model.events().size()}) {
    absl::StrAppend(&text, "  state before event ", moment, "\n");
    for (const trace::SnapshotSegment& segment : model.StateBefore(moment)) {
      absl::StrAppend(&text, "    ", segment.is_expandable ? "range " : "segment ", Hex(segment.address), " ",
                      segment.size_bytes, segment.is_small_pool ? " small" : " large", "\n");
      for (const trace::SnapshotBlock& block : segment.blocks) {
        if (block.state == trace::BlockState::kFree) continue;
        absl::StrAppend(&text, "      ", block.state == trace::BlockState::kLive ? "Live(" : "Pending(",
                        Hex(block.address), ", ", block.size_bytes, ", ", *block.requested_bytes, ")\n");
      }
    }
  }
  absl::StrAppend(&text, "  events\n");
  for (std::size_t i = cut; i < model.events().size(); ++i) absl::StrAppend(&text, AsCall(model.events()[i]));
  return text;
}

// The occupied blocks of the truth against ours; `unknown` counts the sizes that are a minimum.
std::string Difference(const trace::SnapshotSegment& truth, const StateSegment& ours, std::uint64_t& unknown) {
  if (truth.address != ours.address || truth.size_bytes != ours.size_bytes) return "another range";
  if (truth.stream != ours.stream || truth.is_expandable != ours.is_expandable) return "another stream or kind";
  // Only its blocks tell the pool of a mapped range that is gone in the end.
  if (!truth.is_expandable && truth.is_small_pool != ours.is_small_pool) return "another pool";
  std::size_t i = 0;
  for (const trace::SnapshotBlock& block : truth.blocks) {
    if (block.state == trace::BlockState::kFree) continue;
    if (i == ours.blocks.size()) return absl::StrCat("no block at ", Hex(block.address));
    const StateBlock& our = ours.blocks[i++];
    const std::uint64_t least = our.size_bytes;
    const std::uint64_t most = our.size_is_minimum ? least + kMiB : least;
    if (our.address != block.address || our.state != block.state) return absl::StrCat("at ", Hex(block.address));
    if (block.size_bytes < least || block.size_bytes > most) return absl::StrCat("size at ", Hex(block.address));
    if (our.requested_bytes != block.requested_bytes) return absl::StrCat("request at ", Hex(block.address));
    unknown += our.size_is_minimum;
  }
  return i == ours.blocks.size() ? "" : absl::StrCat("an extra block at ", Hex(ours.blocks[i].address));
}

std::string Difference(const std::vector<trace::SnapshotSegment>& truth, const State& ours, std::uint64_t& unknown) {
  if (truth.size() != ours.segments.size()) {
    return absl::StrCat(truth.size(), " segments in truth, here ", ours.segments.size());
  }
  for (std::size_t i = 0; i < truth.size(); ++i) {
    const std::string difference = Difference(truth[i], ours.segments[i], unknown);
    if (!difference.empty()) return absl::StrCat("segment ", Hex(truth[i].address), ": ", difference);
  }
  return "";
}

Totals TruthTotals(const std::vector<trace::SnapshotSegment>& truth) {
  Totals sum;
  for (const trace::SnapshotSegment& segment : truth) {
    sum.reserved_bytes += segment.size_bytes;
    for (const trace::SnapshotBlock& block : segment.blocks) {
      if (block.state == trace::BlockState::kFree) continue;
      sum.active_bytes += block.size_bytes;
      if (block.state != trace::BlockState::kLive) continue;
      sum.allocated_bytes += block.size_bytes;
      sum.requested_bytes += *block.requested_bytes;
    }
  }
  return sum;
}

struct Seen {
  std::uint64_t histories = 0, pending_starts = 0, unknown_tails = 0, inferred_tails = 0, expandable = 0;
};

// Empty if all holds.
std::string Check(const ModelAllocator& model, std::size_t cut, const BlockSizeRule& rule, Seen& seen) {
  trace::Snapshot snapshot;
  snapshot.segments = model.StateBefore(model.events().size());
  for (trace::SnapshotSegment& segment : snapshot.segments) {
    for (trace::SnapshotBlock& block : segment.blocks) {
      if (block.state == trace::BlockState::kFree) block.requested_bytes = 77;  // stale
    }
  }
  snapshot.device_traces.emplace_back(model.events().begin() + static_cast<std::ptrdiff_t>(cut), model.events().end());
  const absl::StatusOr<StartState> start = Rewind({snapshot, 0}, rule);
  if (!start.ok()) return start.status().ToString();
  std::uint64_t unknown = 0;
  if (std::string difference = Difference(model.StateBefore(cut), *start, unknown); !difference.empty()) {
    return absl::StrCat("start: ", difference);
  }
  if (unknown != start->unknown_tails) return "unknown_tails is not their number";
  const absl::StatusOr<Timeline> timeline = MakeObservedTimeline({snapshot, 0}, rule);
  if (!timeline.ok()) return timeline.status().ToString();
  for (const trace::Note& note : timeline->notes()) {
    if (note.name != "unknown_tails") return absl::StrCat("note ", note.name);
  }
  for (std::size_t i = cut; i <= model.events().size(); ++i) {
    const auto event = static_cast<EventIndex>(i - cut) - 1;
    std::uint64_t unknown_now = 0;
    const std::string difference = Difference(model.StateBefore(i), timeline->StateAt(event), unknown_now);
    if (!difference.empty()) return absl::StrCat("before event ", i, ": ", difference);
    if (unknown_now == 0 && TruthTotals(model.StateBefore(i)) != timeline->TotalsAfter(event)) {
      return absl::StrCat("before event ", i, ": sums");
    }
  }
  ++seen.histories;
  seen.unknown_tails += start->unknown_tails;
  seen.inferred_tails += start->inferred_tails;
  for (const StateSegment& segment : start->segments) {
    seen.expandable += segment.is_expandable;
    for (const StateBlock& block : segment.blocks) seen.pending_starts += block.state == trace::BlockState::kPending;
  }
  return "";
}

void CheckHistories(ModelOptions options, Seen& seen) {
  BlockSizeRule rule = TorchRule();
  rule.max_split_size_bytes = options.max_split_size_bytes;
  rule.expandable_option = options.expandable_option;
  // Short histories first, so that what fails is short.
  for (const int acts : {2, 4, 8, 16, 40, 120}) {
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      ModelAllocator model(seed * 1000 + static_cast<std::uint64_t>(acts), options);
      for (int i = 0; i < acts; ++i) model.Act();
      const std::size_t cut = seed * 7919 % (model.events().size() + 1);
      const std::string failure = Check(model, cut, rule, seen);
      ASSERT_EQ(failure, "") << "seed " << seed << ", " << acts << " acts\n" << Print(model, cut);
    }
  }
}

TEST(HistoryPropertyTest, DefaultSettings) {
  Seen seen;
  CheckHistories({}, seen);
  EXPECT_GT(seen.pending_starts, 50u);
  EXPECT_GT(seen.unknown_tails, 20u);
  EXPECT_GT(seen.inferred_tails, 20u);
}

TEST(HistoryPropertyTest, MaxSplit) {
  Seen seen;
  CheckHistories({.max_split_size_bytes = 21 * kMiB}, seen);
  EXPECT_EQ(seen.histories, 360u);
}

TEST(HistoryPropertyTest, Expandable) {
  Seen seen;
  CheckHistories({.expandable_option = true}, seen);
  EXPECT_GT(seen.expandable, 100u);
  EXPECT_EQ(seen.unknown_tails, 0u);
}

}  // namespace
}  // namespace ashlar::timeline
