// A fleet as it is printed: the JSON by its schema, every object of it seen, and the text with the JSON's numbers.
#include <string>
#include <utility>
#include <vector>

#include "allocator/base/units.h"
#include "commands/fleet/fleet.h"
#include "commands/fleet/fleet_rank.h"
#include "commands/shared/input.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/commands/printed.h"
#include "tests/commands/schema_check.h"
#include "tests/corpus_files.h"

namespace ashlar::tests {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;

answers::FleetMember Member(std::uint64_t rank, const answers::RankSummary& summary) {
  answers::FleetMember out{.path = "run/rank" + std::to_string(rank) + ".pickle", .file_bytes = 100, .rank = rank};
  out.summary = summary;
  return out;
}

// A failed snapshot, told from its file, in 16 ranks: of two stages, one apart, one that grows, one other setting.
answers::FleetAnswer ExampleFleet() {
  answers::RankOptions options;
  options.replay.capacity_bytes = 12 * kGiB;
  const absl::StatusOr<answers::RankSummary> one = answers::SummarizeRank(
      *answers::LoadInput(FileBytes(ASHLAR_SOURCE_DIR "/docs/examples/training_oom.pickle")), options);
  EXPECT_TRUE(one.ok()) << one.status();
  std::vector<answers::FleetMember> members;
  for (std::uint64_t rank = 0; rank < 16; ++rank) {
    answers::RankSummary summary = *one;
    if (rank > 1) summary.failure.reset();
    if (rank >= 8) summary.peak_allocated_bytes = *summary.peak_allocated_bytes / 2;
    members.push_back(Member(rank, summary));
  }
  members[3].summary->stranded_bytes = 3 * kGiB;
  members[4].summary->growth = answers::RankGrowth{kMiB, 7 * kMiB, "train.py:9 step"};
  members[5].summary->conf = "max_split_size_mb:64";
  members.push_back({.path = "run/rank16.pickle", .rank = 16, .error = "byte 7: cut\x1b[2J off"});
  return answers::AnswerFleet(std::move(members), "ranks are told from \"rank\" in the files' names");
}

TEST(FleetReport, JsonKeepsItsSchema) {
  SchemaCheck schema(json::parse(FileBytes(ASHLAR_SOURCE_DIR "/docs/schemas/fleet.schema.json")));
  EXPECT_THAT(schema.SchemaFaults(), IsEmpty());
  const json document = json::parse(report::ToJson(ExampleFleet()));
  schema.Check(document);
  EXPECT_THAT(schema.errors(), IsEmpty());
  EXPECT_THAT(schema.UnseenObjects(), IsEmpty());
  EXPECT_EQ(document["ranks"].size(), 17u);
  EXPECT_EQ(document["failures"].size(), 2u);
  EXPECT_EQ(document["stages"].size(), 2u);
  EXPECT_EQ(document["broken"], json({16}));
  EXPECT_EQ(document["heat"]["bins"], 200);
}

TEST(FleetReport, TextHasEachPartAndTheNumbers) {
  const answers::FleetAnswer answer = ExampleFleet();
  const std::string text = report::ToText(answer);
  for (const char* part :
       {"FLEET   17 files", "ANSWER  2 of 16 ranks ran out of memory", "FAILED", "WHO DIFFERS", "STAGES", "CAUSES",
        "GROWTH", "SETTINGS DIFFER", "ONE SETTING FOR ALL", "NOT USED", "NOTES"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  EXPECT_THAT(text, HasSubstr("rank 3"));
  EXPECT_THAT(text, HasSubstr("3.00 GiB"));
  EXPECT_THAT(text, HasSubstr("train.py:9 step"));
  // A cause in all 16 ranks, the first in those two that failed.
  EXPECT_THAT(text, HasSubstr("16 ranks   median"));
  EXPECT_THAT(text, HasSubstr("ranks 0-15; the first in ranks 0, 1, which failed"));
  // What a file names does not reach the terminal.
  EXPECT_THAT(text, testing::Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace ashlar::tests
