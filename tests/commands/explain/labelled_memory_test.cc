// Live blocks by the texts that the program put on them, and the figures of pinned host memory.
#include "commands/explain/labelled_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "analyzer/timeline/timeline_builder.h"

namespace ashlar::answers {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using trace::Action;

constexpr std::uint64_t kLabelledBase = 0x1000000;
constexpr std::uint64_t kLabelledBlock = 2 * kMiB;

class LabelledRun {
 public:
  LabelledRun() : builder_(timeline::StartState{}) { Add(Action::kSegmentAlloc, 0, 20 * kMiB, ""); }

  void Add(Action action, std::uint64_t block, std::uint64_t bytes, const std::string& text) {
    trace::Event event;
    event.action = action;
    event.address = kLabelledBase + block * kLabelledBlock;
    event.size_bytes = bytes;
    event.label = labels_.Intern({.user_metadata = text});
    const absl::Status status = builder_.Add(event, action == Action::kAlloc ? bytes : 0);
    ASSERT_TRUE(status.ok()) << status;
  }
  void Alloc(std::uint64_t block, const std::string& text) { Add(Action::kAlloc, block, kLabelledBlock, text); }
  void Free(std::uint64_t block, const std::string& text) {
    Add(Action::kFreeRequested, block, kLabelledBlock, text);
    Add(Action::kFreeCompleted, block, kLabelledBlock, text);
  }
  void Annotate(std::uint64_t block, const std::string& text) { Add(Action::kAnnotate, block, kLabelledBlock, text); }

  // "text kind MiB blocks" after the last event.
  std::vector<std::string> Lines(std::size_t most = 5) { return LinesAt(std::nullopt, most); }
  std::vector<std::string> LinesAt(std::optional<timeline::EventIndex> moment, std::size_t most = 5) {
    const absl::StatusOr<timeline::Timeline> timeline = builder_.Finish();
    if (!timeline.ok()) return {timeline.status().ToString()};
    std::vector<std::string> out;
    for (const LabelLine& line : LinesByLabel(*timeline, moment.value_or(timeline->last_event()), labels_, most)) {
      out.push_back(absl::StrCat(line.label, " ", LabelKindName(line.kind), " ", line.bytes / kMiB, " ", line.blocks));
    }
    return out;
  }

 private:
  trace::LabelTable labels_;
  timeline::TimelineBuilder builder_;
};

TEST(LinesByLabelTest, BlocksCountUnderTheTextOfTheirAllocation) {
  LabelledRun run;
  run.Alloc(0, "loading");
  run.Alloc(1, "forward");
  run.Alloc(2, "forward");
  run.Alloc(3, "");
  EXPECT_THAT(run.Lines(), ElementsAre("forward metadata 4 2", "loading metadata 2 1"));
}

// A free says the text of the thread that frees, which is none of the block's.
TEST(LinesByLabelTest, FreedBlocksAndTheirTextsDoNotCount) {
  LabelledRun run;
  run.Alloc(0, "loading");
  run.Annotate(0, "packed");
  run.Free(0, "backward");
  run.Alloc(0, "");
  EXPECT_THAT(run.Lines(), IsEmpty());
}

TEST(LinesByLabelTest, AnAnnotatedBlockCountsOnceInEachOfItsTexts) {
  LabelledRun run;
  run.Alloc(0, "forward");
  run.Annotate(0, "packed");
  run.Annotate(0, "packed");
  run.Annotate(0, "first");
  EXPECT_THAT(run.Lines(), ElementsAre("forward metadata 2 1", "first annotation 2 1", "packed annotation 2 1"));
}

// Its text came after the moment, and says what the block was all the same.
TEST(LinesByLabelTest, AnAnnotationCountsForTheWholeLifeOfItsBlock) {
  LabelledRun run;
  run.Alloc(0, "");
  run.Alloc(1, "");
  run.Annotate(0, "packed");
  run.Free(0, "");
  run.Alloc(0, "");
  EXPECT_THAT(run.LinesAt(1), ElementsAre("packed annotation 2 1"));
  EXPECT_THAT(run.Lines(), IsEmpty());
}

TEST(LinesByLabelTest, OfEachKindThereAreAsManyLinesAsAskedFor) {
  LabelledRun run;
  run.Alloc(0, "a");
  run.Alloc(1, "b");
  run.Alloc(2, "b");
  run.Annotate(0, "x");
  EXPECT_THAT(run.Lines(1), ElementsAre("b metadata 4 2", "x annotation 2 1"));
}

trace::Event HostEvent(Action action, std::uint64_t address, std::uint64_t size_bytes) {
  trace::Event out;
  out.action = action;
  out.address = address;
  out.size_bytes = size_bytes;
  return out;
}

trace::HostMemory OneHeld(std::vector<trace::Event> events) {
  trace::HostMemory out;
  out.segments.emplace_back().address = 4096;
  out.segments[0].size_bytes = 8192;
  out.segments[0].blocks = {{4096, 4096, 4000, trace::BlockState::kLive}, {8192, 4096, {}, trace::BlockState::kFree}};
  out.events = std::move(events);
  return out;
}

TEST(HostFiguresTest, WhatWasHeldAndUsedAtTheMost) {
  const auto host = FiguresOf(
      OneHeld({HostEvent(Action::kSegmentAlloc, 4096, 8192), HostEvent(Action::kAlloc, 4096, 4096),
               HostEvent(Action::kSegmentAlloc, 1 << 20, 16384), HostEvent(Action::kAlloc, 1 << 20, 16384),
               HostEvent(Action::kFreeRequested, 1 << 20, 16384), HostEvent(Action::kFreeCompleted, 1 << 20, 16384),
               HostEvent(Action::kSegmentFree, 1 << 20, 16384)}));
  ASSERT_TRUE(host.has_value());
  EXPECT_EQ(host->held_bytes, 8192u);
  EXPECT_EQ(host->in_use_bytes, 4096u);
  EXPECT_EQ(host->blocks, 1u);
  EXPECT_EQ(host->peak_held_bytes, 8192u + 16384u);
  EXPECT_EQ(host->peak_in_use_bytes, 4096u + 16384u);
  EXPECT_EQ(host->events, 7u);
}

TEST(HostFiguresTest, PeaksThatContradictTheStateAreNotKnown) {
  const auto host = FiguresOf(OneHeld({HostEvent(Action::kSegmentAlloc, 4096, 65536)}));
  ASSERT_TRUE(host.has_value());
  EXPECT_EQ(host->peak_held_bytes, std::nullopt);
  EXPECT_EQ(host->peak_in_use_bytes, 4096u);
}

TEST(HostFiguresTest, WithoutARecordThereAreNone) { EXPECT_EQ(FiguresOf({}), std::nullopt); }

}  // namespace
}  // namespace ashlar::answers
