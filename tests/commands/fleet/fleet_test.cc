// The reduction of many ranks, from figures made here: whom it must name, and whom it must leave alone.
#include "commands/fleet/fleet.h"

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "allocator/base/units.h"
#include "commands/shared/input.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ashlar::answers {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

FleetMember Rank(std::uint64_t rank, std::uint64_t allocated_mib, std::uint64_t reserved_mib) {
  FleetMember out{.path = "rank" + std::to_string(rank) + ".pickle", .rank = rank};
  RankSummary summary;
  summary.peak_allocated_bytes = allocated_mib * kMiB;
  summary.peak_reserved_bytes = reserved_mib * kMiB;
  summary.stranded_bytes = (reserved_mib - allocated_mib) * kMiB;
  out.summary = std::move(summary);
  return out;
}

// 64 ranks of about 1,000 MiB.
std::vector<FleetMember> Alike() {
  std::vector<FleetMember> out;
  for (std::uint64_t rank = 0; rank < 64; ++rank) out.push_back(Rank(rank, 1000 + rank % 7, 1200 + rank % 5));
  return out;
}

RankCurve Curve(std::int64_t begin, std::int64_t end, std::uint64_t bytes) {
  return {true, begin, end, std::vector<std::uint64_t>(kFleetBins, bytes),
          std::vector<std::uint64_t>(kFleetBins, 2 * bytes)};
}

void Fail(FleetMember& member, std::int64_t at, const std::string& cause) {
  member.summary->failure = RankFailure{at, 64 * kMiB, "fragmentation"};
  member.summary->causes.push_back({cause, "Sentence of " + cause, "proven", 100 * kMiB, true, "model.py:1 f"});
}

whatif::WhatIfRow Row(std::uint64_t peak_mib, std::uint64_t ooms) {
  whatif::WhatIfRow out;
  out.peak_reserved_bytes = peak_mib * kMiB;
  out.ooms = ooms;
  out.feasible = ooms == 0;
  return out;
}

TEST(Fleet, RanksThatAreAlikeHaveNoOutlierAndNoStage) {
  const FleetAnswer answer = AnswerFleet(Alike(), "as made");
  EXPECT_THAT(answer.outliers, IsEmpty());
  EXPECT_THAT(answer.stages, IsEmpty());
  EXPECT_THAT(answer.sentences.front(), HasSubstr("no request failed in 64 ranks"));
}

TEST(Fleet, OneRankThatHoldsTwiceAsMuch) {
  std::vector<FleetMember> members = Alike();
  members[37] = Rank(37, 2000, 2300);
  const FleetAnswer answer = AnswerFleet(members, "as made");
  ASSERT_THAT(answer.outliers, SizeIs(3));
  for (const FleetOutlier& outlier : answer.outliers) EXPECT_EQ(answer.members[outlier.member].rank, 37);
  EXPECT_EQ(answer.outliers.front().median_bytes / kMiB, 1202u);
  EXPECT_THAT(answer.sentences, Contains(HasSubstr("rank 37")));
}

TEST(Fleet, StagesAreComparedWithThemselves) {
  std::vector<FleetMember> members;
  for (std::uint64_t rank = 0; rank < 64; ++rank) {
    const std::uint64_t stage = rank / 32;
    members.push_back(Rank(rank, 1000 + 1000 * stage + rank % 3, 1200 + 1000 * stage + rank % 3));
  }
  members[5] = Rank(5, 1500, 1700);  // between the two: wrong for its own
  const FleetAnswer answer = AnswerFleet(members, "as made");
  ASSERT_THAT(answer.stages, SizeIs(2));
  EXPECT_EQ(answer.stages[0].members.size(), 31u);
  EXPECT_EQ(answer.stages[1].members.size(), 32u);
  ASSERT_THAT(answer.outliers, SizeIs(2));  // allocated and reserved
  EXPECT_EQ(answer.outliers.front().member, 5u);
  EXPECT_EQ(answer.outliers.front().stage, 0u);
}

TEST(Fleet, OddRanksOfASmallFleetAreNoStage) {
  std::vector<FleetMember> members;
  for (std::uint64_t rank = 0; rank < 8; ++rank) members.push_back(Rank(rank, 1000 + rank % 3, 1200 + rank % 3));
  members[2] = Rank(2, 2000, 2200);
  members[6] = Rank(6, 2001, 2201);
  const FleetAnswer two = AnswerFleet(members, "as made");
  EXPECT_THAT(two.stages, IsEmpty());
  EXPECT_THAT(two.outliers, SizeIs(4));  // allocated and reserved of both
  members[5] = Rank(5, 2002, 2202);
  EXPECT_THAT(AnswerFleet(members, "as made").stages, SizeIs(2));
  for (const Member failed : {2, 5, 6}) Fail(members[failed], 0, "growing_sizes");
  EXPECT_THAT(AnswerFleet(members, "as made").stages, IsEmpty());
}

TEST(Fleet, WhoFailedFirstByTheClock) {
  std::vector<FleetMember> members = Alike();
  for (FleetMember& member : members) member.summary->curve = Curve(1'000'000, 9'000'000, kGiB);
  Fail(members[3], 8'000'000, "growing_sizes");
  Fail(members[9], 4'500'000, "growing_sizes");
  const FleetAnswer answer = AnswerFleet(members, "as made");
  EXPECT_EQ(answer.clock, FleetClock::kCommon);
  ASSERT_THAT(answer.failures, SizeIs(2));
  EXPECT_EQ(answer.failures[0].member, 9u);
  EXPECT_EQ(answer.failures[0].after_us, 3'500'000);
  EXPECT_THAT(answer.sentences[0], HasSubstr("rank 9 first, after 3.500 s; then rank 3"));
  EXPECT_THAT(answer.sentences[1], HasSubstr("one cause in all that failed: Sentence of growing_sizes"));
}

TEST(Fleet, RanksThatRanApartCountFromTheirOwnBeginning) {
  std::vector<FleetMember> members = Alike();
  std::int64_t begin = 0;
  for (FleetMember& member : members) {
    begin += 10'000'000;
    member.summary->curve = Curve(begin, begin + 1'000'000, kGiB);
  }
  Fail(members[60], 610'000'000 + 300'000, "retry_storm");
  Fail(members[2], 30'000'000 + 800'000, "growing_sizes");
  const FleetAnswer answer = AnswerFleet(members, "as made");
  EXPECT_EQ(answer.clock, FleetClock::kOwn);
  // Who failed first is not known: they are in the order of rank.
  EXPECT_FALSE(answer.failures_in_order);
  EXPECT_EQ(answer.failures[0].member, 2u);
  EXPECT_EQ(answer.failures[1].after_us, 300'000);
  EXPECT_EQ(answer.sentences[0], "2 of 64 ranks ran out of memory: ranks 2, 60");
  EXPECT_THAT(answer.sentences[1], HasSubstr("2 causes in those that failed"));
  EXPECT_EQ(answer.heat.end_us - answer.heat.begin_us, 1'000'000);
}

TEST(Fleet, WithoutTimesItSaysThatTheOrderIsNotKnown) {
  std::vector<FleetMember> members = Alike();
  members[3].summary->failure = RankFailure{std::nullopt, kMiB, "capacity"};
  members[1].summary->failure = RankFailure{std::nullopt, kMiB, "capacity"};
  const FleetAnswer answer = AnswerFleet(members, "as made");
  EXPECT_FALSE(answer.failures_in_order);
  EXPECT_EQ(answer.failures.front().member, 1u);
  EXPECT_THAT(answer.notes, Contains(HasSubstr("who failed first is not in these files")));
}

TEST(Fleet, HeatHasTheGreatestValueOfEachBinAndNothingOutside) {
  std::vector<FleetMember> members = {Rank(0, 512, 1024), Rank(1, 512, 1024)};
  members[0].summary->curve = Curve(0, 200'000, 256 * kMiB);
  members[1].summary->curve = Curve(100'000, 200'000, 512 * kMiB);
  members[0].summary->curve->allocated_bytes[10] = 512 * kMiB;
  const FleetAnswer answer = AnswerFleet(members, "as made");
  ASSERT_EQ(answer.heat.full_bytes, kGiB);
  const auto& first = answer.heat.rows[0];
  const auto& second = answer.heat.rows[1];
  EXPECT_EQ(first.allocated[9], 250);
  EXPECT_EQ(first.allocated[10], 500);
  EXPECT_EQ(first.reserved[0], 500);
  EXPECT_EQ(second.allocated[99], std::nullopt);
  EXPECT_EQ(second.allocated[100], 500);
  EXPECT_EQ(second.reserved[199], 1000);
}

TEST(Fleet, OneSettingHasToServeEveryRank) {
  std::vector<FleetMember> members = {Rank(0, 512, 1024), Rank(1, 512, 1024)};
  for (FleetMember& member : members) {
    RankSummary& summary = *member.summary;
    summary.compat = "torch-2.10";
    summary.rows = {{"", true, Row(1024, 1)},
                    {"", true, Row(1024, 1)},
                    {"expandable_segments:True", false, Row(600, 0)},
                    {"max_split_size_mb:64", false, Row(590, 0)}};
    summary.rows[0].row.is_baseline = true;
  }
  // The second rank cannot live with the split limit, and knows nothing of rounding.
  members[1].summary->rows[3].row = Row(1024, 1);
  members[0].summary->rows.push_back({"roundup_power2_divisions:4", false, Row(100, 0)});
  const FleetAnswer answer = AnswerFleet(members, "as made");
  ASSERT_TRUE(answer.tried.has_value());
  EXPECT_THAT(answer.tried->result.rows, SizeIs(3));
  EXPECT_EQ(answer.tried->result.rows.front().conf, "expandable_segments:True");
  EXPECT_EQ(answer.tried->result.advice.paste, "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True");
  EXPECT_EQ(answer.tried->result.rows.front().traces.size(), 2u);
  EXPECT_THAT(answer.notes, Contains(HasSubstr("roundup_power2_divisions:4 was not tried")));
}

TEST(Fleet, SettingsThatCouldNotBeReadAreToldOfTheirRanks) {
  std::vector<FleetMember> members = Alike();
  members[3].summary->unread = {"no_such_key is no setting"};
  members[5].summary->unread = members[3].summary->unread;
  EXPECT_THAT(AnswerFleet(members, "as made").notes, Contains("ranks 3, 5: no_such_key is no setting"));
}

TEST(Fleet, ASettingThatARanksVersionDoesNotKnowCostsNoRank) {
  const absl::StatusOr<Input> input = LoadInput("a 1 30000000 0\na 2 50000000 0\nf 1\n");
  ASSERT_TRUE(input.ok()) << input.status();
  RankOptions options;
  options.replay.overrides.compat = policy::Compat::kTorch113;
  options.confs = {"expandable_segments:True"};
  const absl::StatusOr<RankSummary> none = SummarizeRank(*input, options);
  ASSERT_TRUE(none.ok()) << none.status();
  ASSERT_THAT(none->rows, SizeIs(1));
  EXPECT_TRUE(none->rows[0].row.is_baseline);
  options.confs.push_back("max_split_size_mb:32");
  const absl::StatusOr<RankSummary> one = SummarizeRank(*input, options);
  ASSERT_TRUE(one.ok()) << one.status();
  ASSERT_THAT(one->rows, SizeIs(2));
  EXPECT_EQ(one->rows[1].conf, "max_split_size_mb:32");
}

TEST(Fleet, SettingsThatDifferAreTold) {
  std::vector<FleetMember> members = Alike();
  for (FleetMember& member : members) member.summary->compat = "torch-2.10";
  for (std::size_t rank = 40; rank < 48; ++rank) members[rank].summary->conf = "max_split_size_mb:64";
  const FleetAnswer answer = AnswerFleet(members, "as made");
  ASSERT_THAT(answer.settings, SizeIs(2));
  EXPECT_THAT(answer.sentences, Contains("ranks 40-47 ran under max_split_size_mb:64; the other 56 ranks under the "
                                         "default settings"));
}

TEST(Fleet, BrokenFilesAreNamedAndTheRestIsAnswered) {
  std::vector<FleetMember> members = Alike();
  members[7].summary.reset();
  members[7].error = "byte 12: the file ends within a string";
  const FleetAnswer answer = AnswerFleet(members, "as made");
  EXPECT_THAT(answer.broken, ElementsAre(7));
  EXPECT_THAT(answer.sentences, Contains(HasSubstr("rank7.pickle: byte 12: the file ends within a string")));
  EXPECT_THAT(answer.sentences.front(), HasSubstr("63 ranks"));
}

TEST(Fleet, TheOrderOfTheFilesDoesNotMatter) {
  std::vector<FleetMember> members = Alike();
  for (FleetMember& member : members) member.summary->curve = Curve(0, 1000, kGiB);
  Fail(members[5], 500, "growing_sizes");
  members[11].summary->growth = RankGrowth{kMiB, 9 * kMiB, "train.py:3 f"};
  const FleetAnswer sorted = AnswerFleet(members, "as made");
  std::shuffle(members.begin(), members.end(), std::mt19937(1));
  const FleetAnswer shuffled = AnswerFleet(members, "as made");
  EXPECT_EQ(sorted.sentences, shuffled.sentences);
  EXPECT_EQ(sorted.growths.front().members, shuffled.growths.front().members);
  EXPECT_EQ(sorted.failures.front().member, shuffled.failures.front().member);
}

TEST(Fleet, TwoFilesOfOneRankKeepTheirNames) {
  std::vector<FleetMember> members = {Rank(0, 500, 600), Rank(0, 500, 600)};
  members[1].path = "later/rank0.pickle";
  const FleetAnswer answer = AnswerFleet(members, "as made");
  EXPECT_EQ(answer.members[0].name, "rank 0 (later/rank0.pickle)");
  EXPECT_EQ(answer.members[1].name, "rank 0 (rank0.pickle)");
  EXPECT_EQ(answer.sentences.front(), "no request failed in 1 rank");
}

TEST(Fleet, NothingAtAll) { EXPECT_THAT(AnswerFleet({}, "none").sentences, IsEmpty()); }

}  // namespace
}  // namespace ashlar::answers
