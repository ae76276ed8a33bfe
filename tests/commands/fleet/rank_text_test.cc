#include "commands/fleet/rank_text.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ashlar::fleet {
namespace {

using answers::RankSummary;

// Every field with a value of its own, the optional ones too.
RankSummary Full() {
  RankSummary out;
  out.source = "PyTorch snapshot \"x\"\n\ttab, device 0";
  out.headline = "OUT OF MEMORY";
  out.device = 3;
  out.events = 18446744073709551615u;
  out.failure = answers::RankFailure{-5, 7, "fragmentation"};
  out.peak_allocated_bytes = 8;
  out.peak_reserved_bytes = 9;
  out.stranded_bytes = 10;
  out.total_bytes = 11;
  out.causes = {{"a", "b", "proven", 12, false, "c.py:1 f"}, {"d", "e", "likely", 13, true, ""}};
  out.growth = answers::RankGrowth{14, 15, "g.py:2 h"};
  out.steps = 16;
  out.addresses_matched = 17;
  out.addresses_total = 18;
  out.compat = "torch-2.10";
  out.conf = "expandable_segments:True,pinned:1";
  out.carried = "pinned:1";
  out.unread = {"x is no setting"};
  whatif::WhatIfRow row;
  row.conf = "x:1";
  row.is_baseline = true;
  row.peak_reserved_bytes = 19;
  row.peak_allocated_bytes = 20;
  row.ooms = 21;
  row.driver_calls = 22;
  row.cost_ns = 23;
  row.retries = 24;
  row.feasible = false;
  row.risks = {{"r", whatif::RiskLevel::kCaution, "sentence", "source"}};
  row.gets_past = true;
  row.is_cut_off = true;
  row.projected = whatif::ProjectedPart{25, 26, 27, 28, 29, 30, 31, 32, 33, 34, true};
  out.rows = {{"x:1", true, row}, {"", false, {}}};
  out.curve = answers::RankCurve{true, -100, 9'007'199'254'740'993, {1, 2}, {3, 18446744073709551615u}};
  return out;
}

TEST(RankText, WhatIsWrittenReadsBack) {
  const std::string line = WriteRank(Full());
  EXPECT_THAT(line, testing::Not(testing::HasSubstr("\n")));
  const absl::StatusOr<RankResult> again = ReadRank(line);
  ASSERT_TRUE(again.ok()) << again.status();
  ASSERT_TRUE(again->ok());
  EXPECT_EQ(WriteRank(*again), line);
  const RankSummary& s = **again;
  const RankSummary full = Full();
  EXPECT_EQ(s.source, full.source);
  EXPECT_EQ(s.events, full.events);
  EXPECT_EQ(s.failure, full.failure);
  EXPECT_EQ(s.causes, full.causes);
  EXPECT_EQ(s.growth, full.growth);
  EXPECT_EQ(s.curve, full.curve);
  ASSERT_EQ(s.rows.size(), 2u);
  EXPECT_EQ(s.rows[0].row.risks.front().level, whatif::RiskLevel::kCaution);
  EXPECT_EQ(s.rows[0].row.projected->growth_bytes_per_step, 34u);
  EXPECT_TRUE(s.rows[0].row.projected->is_extrapolated);
  EXPECT_EQ(s.rows[0].row.feasible, false);
  EXPECT_EQ(s.rows[1].row.feasible, std::nullopt);
}

// No field is forgotten: each one that is written is looked for by a reader that lacks it.
TEST(RankText, EveryFieldIsNeeded) {
  const std::string line = WriteRank(Full());
  std::size_t fields = 0;
  for (std::size_t at = line.find("\":"); at != std::string::npos; at = line.find("\":", at + 1)) {
    std::string without = line;
    without[at - 1] = without[at - 1] == '!' ? '?' : '!';
    EXPECT_FALSE(ReadRank(without).ok()) << line.substr(at > 20 ? at - 20 : 0, 30);
    ++fields;
  }
  EXPECT_GT(fields, 70u);
}

TEST(RankText, AnErrorIsAResult) {
  const absl::StatusOr<RankResult> again = ReadRank(WriteRank(absl::InvalidArgumentError("byte 7: \xff \"bad\"")));
  ASSERT_TRUE(again.ok());
  EXPECT_FALSE(again->ok());
  EXPECT_THAT(std::string(again->status().message()), testing::HasSubstr("byte 7: "));
}

TEST(RankText, CutsAreNoResults) {
  const std::string line = WriteRank(Full());
  for (std::size_t size = 0; size < line.size(); size += 7) EXPECT_FALSE(ReadRank(line.substr(0, size)).ok()) << size;
  EXPECT_FALSE(ReadRank("{\"version\": 999, \"error\": \"\"}").ok());
}

}  // namespace
}  // namespace ashlar::fleet
