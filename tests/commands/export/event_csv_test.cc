// The tables that walk a run's events, over a small run made by hand.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "commands/export/csv.h"
#include "commands/export/event_walk.h"
#include "commands/export/tables.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ashlar::exports {
namespace {

using testing::ElementsAre;
using trace::Action;

// A request trace: 1,000 bytes, 3 MiB, the first freed, 500 bytes in its place.
ExportedRun SmallRun() {
  auto content = std::make_unique<const formats::Content>(trace::RequestTrace{{{.bytes = 1000, .id = 0},
                                                                               {.bytes = 3 << 20, .id = 1},
                                                                               {.id = 0, .kind = trace::OpKind::kFree},
                                                                               {.bytes = 500, .id = 2}},
                                                                              3});
  absl::StatusOr<answers::TracedRun> traced = answers::TraceInput(answers::Input(std::move(content)), {});
  EXPECT_TRUE(traced.ok()) << traced.status();
  return ExportedRun{*std::move(traced), 3};
}

TEST(EventCsvTest, ALineAnEventWithTheSumsAfterIt) {
  std::string text;
  StringSink sink(&text);
  WriteEventCsvHeader(sink);
  WriteEventCsv(SmallRun(), sink);
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  EXPECT_EQ(lines.front().substr(0, 27), "device,event,time_us,action");
  std::vector<std::string> seen;
  for (std::size_t i = 1; i + 1 < lines.size(); ++i) {
    const std::vector<std::string> fields = absl::StrSplit(lines[i], ',');
    ASSERT_EQ(fields.size(), 15u) << lines[i];
    seen.push_back(fields[3] + " " + fields[5] + " in " + fields[6] + ": " + fields[11] + " of " + fields[13]);
  }
  EXPECT_THAT(
      seen, ElementsAre("segment_alloc 2097152 in : 0 of 2097152", "alloc 1000 in 1024: 1024 of 2097152",
                        "segment_alloc 20971520 in : 1024 of 23068672", "alloc 3145728 in 3145728: 3146752 of 23068672",
                        "free_requested 1000 in 1024: 3145728 of 23068672",
                        "free_completed 1000 in 1024: 3145728 of 23068672", "alloc 500 in 512: 3146240 of 23068672"));
}

TEST(EventCsvTest, EveryEventFindsItsBlock) {
  const ExportedRun run = SmallRun();
  BlockOfEvent blocks(run.traced.timeline);
  for (const trace::Event& event : run.traced.timeline.events()) {
    const timeline::BlockSpan* const block = blocks.Next(event);
    const bool is_of_block = event.action != Action::kSegmentAlloc;
    ASSERT_EQ(block != nullptr, is_of_block);
    if (is_of_block) {
      EXPECT_EQ(block->address, event.address);
      EXPECT_EQ(block->AskedBytes(), event.size_bytes);
    }
  }
}

TEST(EventCsvTest, TimesNeverGoBackwards) {
  std::vector<trace::Event> events(4);
  events[0].time_us = 50;
  events[2].time_us = 40;
  events[3].time_us = 70;
  const EventClock clock(events);
  EXPECT_TRUE(clock.has_time());
  std::vector<std::int64_t> times;
  for (const timeline::EventIndex i : {timeline::kBeforeWindow, timeline::EventIndex{1}, timeline::EventIndex{2},
                                       timeline::EventIndex{3}, timeline::kNever}) {
    times.push_back(clock.MicrosOf(i));
  }
  EXPECT_THAT(times, ElementsAre(50, 50, 50, 70, 71));
  const EventClock without(std::vector<trace::Event>(3));
  EXPECT_FALSE(without.has_time());
  EXPECT_EQ(without.MicrosOf(2), 2);
}

TEST(CsvTablesTest, ARowIsALineAndNothingAnEmptyField) {
  std::vector<std::string> texts(kTableCount);
  std::vector<StringSink> sinks;
  for (std::string& text : texts) sinks.emplace_back(&text);
  std::size_t next = 0;
  CsvTables tables([&](const TableDefinition&) -> ByteSink& { return sinks[next++]; });
  tables.Add(TableId::kFrames, {std::int64_t{3}, absl::string_view("a,b.py"), Cell{}, absl::string_view("f")});
  EXPECT_EQ(texts[static_cast<std::size_t>(TableId::kFrames)], "frame,file,line,function\n3,\"a,b.py\",,f\n");
  WriteRunTables(SmallRun(), tables);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::size_t columns = TableDefinitions()[i].columns.size();
    for (const absl::string_view line : absl::StrSplit(texts[i], '\n', absl::SkipEmpty())) {
      if (line.find('"') != absl::string_view::npos) continue;
      EXPECT_EQ(std::vector<std::string>(absl::StrSplit(line, ',')).size(), columns) << line;
    }
  }
}

}  // namespace
}  // namespace ashlar::exports
