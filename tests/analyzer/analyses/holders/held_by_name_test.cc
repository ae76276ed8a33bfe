// Who holds the live blocks by name: the join of a snapshot's names with its trace.
#include "analyzer/analyses/holders/held_by_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "allocator/base/units.h"
#include "analyzer/timeline/timeline_builder.h"

namespace ashlar::analyses {
namespace {

using testing::ElementsAre;
using trace::Action;

constexpr std::uint64_t kHeldBase = 0x1000000;

trace::Holder HolderNamed(const std::string& kind, const std::string& name) {
  trace::Holder out;
  out.kind = kind;
  out.name = name;
  return out;
}

// A program of steps of two events; each step allocates a block of 1 MiB.
class HeldRun {
 public:
  HeldRun() : builder_(timeline::StartState{}) { Add(Action::kSegmentAlloc, 0, 20 * kMiB); }

  void Add(Action action, std::uint64_t block, std::uint64_t bytes) {
    trace::Event event;
    event.action = action;
    event.address = kHeldBase + block * kMiB;
    event.size_bytes = bytes;
    const absl::Status status = builder_.Add(event, action == Action::kAlloc ? bytes : 0);
    ASSERT_TRUE(status.ok()) << status;
    ++events_;
  }
  void Step(std::uint64_t block) {
    const timeline::EventIndex begin = events_;
    Add(Action::kAlloc, block, kMiB);
    steps_.steps.push_back({begin, events_});
  }
  void Fail() { Add(Action::kOom, 0, 64 * kMiB); }
  void Free(std::uint64_t block) {
    Add(Action::kFreeRequested, block, kMiB);
    Add(Action::kFreeCompleted, block, kMiB);
  }
  void Name(std::uint64_t block, std::uint32_t owner) {
    names_.blocks.push_back({kHeldBase + block * kMiB, owner, {}});
  }

  const timeline::Timeline& Finished() {
    if (!timeline_.has_value()) timeline_ = *builder_.Finish();
    return *timeline_;
  }
  std::optional<HeldByName> Held() {
    trace::Snapshot snapshot;
    return NameHolders(names_, snapshot, Finished(), steps_);
  }
  // The names that were taken at the end, for what was live after an event.
  HeldByName HeldAfter(timeline::EventIndex at) { return HeldAt(*Held(), Finished(), at); }
  HeldByName HeldOf(const trace::Snapshot& snapshot, timeline::EventIndex at) {
    return *NamesAt(at, snapshot, Finished(), steps_);
  }
  std::optional<timeline::EventIndex> MomentOf(const trace::Holders& names) {
    const auto held = NameHolders(names, trace::Snapshot{}, Finished(), steps_);
    return held.has_value() ? std::optional(held->moment) : std::nullopt;
  }
  timeline::EventIndex last() const { return events_ - 1; }
  trace::Holders& names() { return names_; }

 private:
  trace::Holders names_;
  Steps steps_;
  timeline::TimelineBuilder builder_;
  std::optional<timeline::Timeline> timeline_;
  timeline::EventIndex events_ = 0;
};

std::vector<std::string> RowsOf(const HeldByName& held) {
  std::vector<std::string> out;
  for (const HeldRow& row : held.rows) {
    out.push_back(absl::StrCat(row.holder.kind, " ", row.holder.name, " ", row.bytes / kMiB, " in ", row.blocks));
    if (row.growth.has_value()) {
      absl::StrAppend(&out.back(), ", ", row.growth->bytes_per_step / kMiB, " since ", row.growth->since_step);
    }
  }
  return out;
}

TEST(HeldByNameTest, EachLiveBlockHasOneRowAndTheRowsSumToWhatIsLive) {
  HeldRun run;
  run.names().holders = {HolderNamed("element", "losses[]"), HolderNamed("local", "x")};
  for (std::uint64_t block = 0; block < 4; ++block) run.Step(block);
  run.Add(Action::kAlloc, 4, kMiB);
  run.Add(Action::kAlloc, 5, kMiB);
  for (std::uint64_t block = 0; block < 4; ++block) run.Name(block, 0);
  run.Name(4, 1);
  run.Name(9, 1);  // not live
  const HeldByName held = *run.Held();
  EXPECT_THAT(RowsOf(held),
              ElementsAre("element losses[] 4 in 4, 1 since 1", "local x 1 in 1", "not_found not found 1 in 1"));
  EXPECT_EQ(held.live_bytes, 6 * kMiB);
  EXPECT_EQ(held.named_bytes, 5 * kMiB);
  EXPECT_EQ(held.not_live, 1U);
  std::uint64_t sum = 0;
  for (const HeldRow& row : held.rows) sum += row.bytes;
  EXPECT_EQ(sum, held.live_bytes);
}

TEST(HeldByNameTest, TwoStepsAreNoGrowth) {
  HeldRun run;
  run.names().holders = {HolderNamed("element", "losses[]")};
  run.Step(0);
  run.Step(1);
  run.Name(0, 0);
  run.Name(1, 0);
  EXPECT_THAT(RowsOf(*run.Held()), ElementsAre("element losses[] 2 in 2"));
}

TEST(HeldByNameTest, NamesOfAFailureAreJoinedWithWhatWasLiveThen) {
  HeldRun run;
  run.names().holders = {HolderNamed("local", "batch")};
  run.names().when = "out_of_memory";
  run.Step(0);
  run.Name(0, 0);
  run.Fail();
  run.Free(0);
  EXPECT_THAT(RowsOf(*run.Held()), ElementsAre("local batch 1 in 1"));
  run.names().when = "call";
  EXPECT_THAT(RowsOf(*run.Held()), ElementsAre());
}

// What was freed before the names were taken has none; what stayed has its own.
TEST(HeldByNameTest, NamesOfTheEndServeAnEarlierMoment) {
  HeldRun run;
  run.names().holders = {HolderNamed("element", "losses[]")};
  for (std::uint64_t block = 0; block < 4; ++block) run.Step(block);
  run.Add(Action::kAlloc, 4, kMiB);
  const timeline::EventIndex peak = run.last();
  run.Free(4);
  for (std::uint64_t block = 0; block < 4; ++block) run.Name(block, 0);
  const HeldByName held = run.HeldAfter(peak);
  EXPECT_THAT(RowsOf(held), ElementsAre("element losses[] 4 in 4, 1 since 1", "not_found not found 1 in 1"));
  EXPECT_EQ(held.live_bytes, 5 * kMiB);
  EXPECT_EQ(held.named_bytes, 4 * kMiB);
  EXPECT_TRUE(held.Decides(peak)) << "80 % are named";
  EXPECT_EQ(held.OwnerOf(0)->name, "losses[]");
  EXPECT_EQ(RowsOf(run.HeldAfter(0)).size(), 0U);
}

// A run that has freed everything at its end: the names of a peak are joined with the moment at which just these lived.
TEST(HeldByNameTest, NamesOfAPeakServeItWhereTheEndHasNoneOfIt) {
  HeldRun run;
  for (std::uint64_t block = 0; block < 4; ++block) run.Step(block);
  const timeline::EventIndex walked = run.last();
  run.Add(Action::kAlloc, 4, kMiB);
  const timeline::EventIndex peak = run.last();
  for (std::uint64_t block = 0; block < 5; ++block) run.Free(block);
  run.Add(Action::kAlloc, 2, kMiB);  // another block at the address of one that was named
  trace::Snapshot snapshot;
  snapshot.holders.emplace().when = "exit";
  snapshot.holders->holders = {HolderNamed("local", "other")};
  snapshot.holders->blocks = {{kHeldBase + 2 * kMiB, 0, {}}};
  EXPECT_THAT(RowsOf(run.HeldOf(snapshot, peak)), ElementsAre("not_found not found 5 in 5"));
  snapshot.peak_holders.emplace().when = "peak";
  snapshot.peak_holders->holders = {HolderNamed("element", "losses[]")};
  for (std::uint64_t block = 0; block < 4; ++block) {
    snapshot.peak_holders->blocks.push_back({kHeldBase + block * kMiB, 0, {}});
  }
  EXPECT_EQ(run.MomentOf(*snapshot.peak_holders), walked);
  const HeldByName held = run.HeldOf(snapshot, peak);
  EXPECT_THAT(RowsOf(held), ElementsAre("element losses[] 4 in 4, 1 since 1", "not_found not found 1 in 1"));
  EXPECT_TRUE(held.Decides(peak));
  snapshot.peak_holders->blocks.pop_back();  // 1 to 3 alone: that was before the fourth
  EXPECT_EQ(run.MomentOf(*snapshot.peak_holders), walked - 1);
  snapshot.peak_holders->blocks.erase(snapshot.peak_holders->blocks.begin());  // without the first: never
  EXPECT_EQ(run.MomentOf(*snapshot.peak_holders), std::nullopt);
  EXPECT_THAT(RowsOf(run.HeldOf(snapshot, peak)), ElementsAre("not_found not found 5 in 5"));
}

TEST(HeldByNameTest, WithoutNamesThereIsNoPart) {
  EXPECT_EQ(NamesAt(timeline::kBeforeWindow, trace::Snapshot{}, timeline::Timeline{}, Steps{}), std::nullopt);
}

}  // namespace
}  // namespace ashlar::analyses
