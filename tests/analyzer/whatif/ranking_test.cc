// The order, the Pareto marks and the choice, against their definitions written out and cases by hand; the flags.
#include <string>
#include <vector>

#include "allocator/base/rng.h"
#include "analyzer/whatif/advice.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/analyzer/whatif/request_list.h"

namespace ashlar::whatif {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Score Fits(const std::string& conf, double regret, std::uint64_t cost_ns = 0, RiskLevel risk = RiskLevel::kNone) {
  Score out;
  out.conf = conf;
  out.keys = conf.empty() ? 0 : 1;
  out.regret = regret;
  out.cost_ns = cost_ns;
  out.risk = risk;
  return out;
}

Score Fails(const std::string& conf, std::uint64_t ooms, double regret) {
  Score out = Fits(conf, regret);
  out.failing_traces = 1;
  out.ooms = ooms;
  return out;
}

TEST(RankingTest, FittingComesBeforeAllElseAndTheConfLast) {
  const std::vector<Score> ordered = {Fits("b:1", 0.1),
                                      Fits("a:1", 0.2),
                                      Fits("", 0.2, 10),
                                      Fits("a:1", 0.2, 10, RiskLevel::kCaution),
                                      Fits("c:1", 0, 0, RiskLevel::kNotRecommended),
                                      Fails("a:1", 1, 0),
                                      Fails("b:1", 1, 0),
                                      Fails("a:1", 2, 0)};
  for (std::size_t i = 0; i < ordered.size(); ++i) {
    for (std::size_t j = 0; j < ordered.size(); ++j) EXPECT_EQ(RanksBefore(ordered[i], ordered[j]), i < j) << i << j;
  }
  // A note does not count.
  EXPECT_TRUE(RanksBefore(Fits("a:1", 0, 0, RiskLevel::kNote), Fits("b:1", 0)));
}

bool Dominates(const Score& a, const Score& b) {
  const int worse = (a.failing_traces > b.failing_traces || (a.failing_traces == b.failing_traces && a.ooms > b.ooms)) +
                    (a.regret > b.regret) + (a.cost_ns > b.cost_ns) + (a.risk > b.risk);
  const int better =
      (a.failing_traces < b.failing_traces || (a.failing_traces == b.failing_traces && a.ooms < b.ooms)) +
      (a.regret < b.regret) + (a.cost_ns < b.cost_ns) + (a.risk < b.risk);
  return worse == 0 && better > 0;
}

TEST(RankingTest, ParetoBestAreThoseThatNothingDominates) {
  Rng rng(5);
  for (int round = 0; round < 50; ++round) {
    std::vector<Score> scores;
    for (int i = 0; i < 30; ++i) {
      Score score = rng.Below(3) == 0 ? Fails("", 1 + rng.Below(3), 0) : Fits("", 0);
      score.conf = "k:" + std::to_string(i);
      score.regret = static_cast<double>(rng.Below(5)) / 10;
      score.cost_ns = rng.Below(5);
      score.risk = rng.Below(4) == 0 ? RiskLevel::kCaution : RiskLevel::kNone;
      scores.push_back(score);
    }
    const std::vector<bool> best = ParetoBest(scores);
    for (std::size_t i = 0; i < scores.size(); ++i) {
      bool is_best = true;
      for (std::size_t j = 0; j < scores.size(); ++j) {
        is_best = is_best && !Dominates(scores[j], scores[i]);
        const bool is_same = scores[i].failing_traces == scores[j].failing_traces && scores[i].ooms == scores[j].ooms &&
                             scores[i].regret == scores[j].regret && scores[i].cost_ns == scores[j].cost_ns &&
                             scores[i].risk == scores[j].risk;
        if (is_same && RanksBefore(scores[j], scores[i])) is_best = false;
      }
      EXPECT_EQ(best[i], is_best) << i;
    }
  }
}

TEST(ChoiceTest, ByHand) {
  const std::uint64_t second = 1'000'000'000;
  const auto choose = [](const std::vector<Score>& scores) { return Choose(scores, 0); };
  // Nothing gained: the recorded settings stay. 4.9 % is not even named, 5 % is, and 10 % is worth a change.
  EXPECT_EQ(choose({Fits("", 0), Fits("a:1", 0)}).kind, ChoiceKind::kKeep);
  EXPECT_EQ(choose({Fits("", 1 / 0.951 - 1), Fits("a:1", 0)}).kind, ChoiceKind::kKeep);
  EXPECT_EQ(choose({Fits("", 1 / 0.949 - 1), Fits("a:1", 0)}).kind, ChoiceKind::kNamed);
  EXPECT_EQ(choose({Fits("", 1 / 0.901 - 1), Fits("a:1", 0)}).kind, ChoiceKind::kNamed);
  EXPECT_EQ(choose({Fits("", 1 / 0.899 - 1), Fits("a:1", 0)}).kind, ChoiceKind::kLowersPeak);
  EXPECT_EQ(choose({Fits("", 1 / 0.899 - 1), Fits("a:1", 0)}).row, 1u);
  // Within 1 % of the lowest: less risk first, then no great stall, then fewer keys.
  Score two = Fits("a:1,b:1", 0);
  two.keys = 2;
  EXPECT_EQ(choose({Fits("", 0.15), two, Fits("c:1", 0.009)}).row, 2u);
  EXPECT_EQ(choose({Fits("", 0.15), two, Fits("c:1", 0.011)}).row, 1u);
  EXPECT_EQ(choose({Fits("", 0.15), two, Fits("c:1", 0.009, second)}).row, 1u);
  EXPECT_EQ(choose({Fits("", 0.15), two, Fits("c:1", 0.009, 0, RiskLevel::kCaution)}).row, 1u);
  EXPECT_EQ(choose({Fits("", 0.15), two, Fits("c:1", 0.009, 0, RiskLevel::kNote)}).row, 2u);
  // Never one known to be bad, whatever it saves.
  EXPECT_EQ(choose({Fits("", 0.5), Fits("a:1", 0, 0, RiskLevel::kNotRecommended)}).kind, ChoiceKind::kKeep);
  // A caution is taken where nothing else helps.
  EXPECT_EQ(choose({Fits("", 0.5), Fits("a:1", 0, 0, RiskLevel::kCaution)}).kind, ChoiceKind::kLowersPeak);
  // A failure is mended whatever the peak, and never by failing less.
  EXPECT_EQ(choose({Fails("", 1, 0), Fits("a:1", 0.3)}).kind, ChoiceKind::kFits);
  EXPECT_EQ(choose({Fails("", 5, 0), Fails("a:1", 2, 0)}).kind, ChoiceKind::kNothingFits);
  EXPECT_EQ(choose({Fails("", 5, 0), Fails("a:1", 2, 0)}).row, 1u);
  EXPECT_EQ(choose({Fits("", 0.5), Fails("a:1", 1, 0)}).kind, ChoiceKind::kKeep);
  // What gets past the failure is no cure while what comes after it is open; what is known to the end comes first.
  Score open = Fits("b:1", 0);
  open.open_traces = 1;
  EXPECT_EQ(choose({Fails("", 1, 0), open}).kind, ChoiceKind::kGetsPast);
  EXPECT_EQ(choose({Fails("", 1, 0), open, Fits("a:1", 0.3)}).kind, ChoiceKind::kFits);
  EXPECT_EQ(choose({Fails("", 1, 0), open, Fits("a:1", 0.3)}).row, 2u);
  // Retries are taken away at the same peak, or for 1 % more of it; what retries itself does not.
  Score retries = Fits("", 0);
  retries.retries = 3;
  EXPECT_EQ(choose({retries, Fits("a:1", 0.009)}).kind, ChoiceKind::kCuresRetries);
  EXPECT_EQ(choose({retries, Fits("a:1", 0.02)}).kind, ChoiceKind::kKeep);
  Score fewer = Fits("a:1", 0);
  fewer.retries = 1;
  EXPECT_EQ(choose({retries, fewer}).kind, ChoiceKind::kKeep);
  for (const ChoiceKind kind : {ChoiceKind::kKeep, ChoiceKind::kNamed, ChoiceKind::kGetsPast, ChoiceKind::kNothingFits})
    EXPECT_FALSE(IsWorthAChange(kind));
  for (const ChoiceKind kind : {ChoiceKind::kFits, ChoiceKind::kLowersPeak, ChoiceKind::kCuresRetries})
    EXPECT_TRUE(IsWorthAChange(kind));
}

std::vector<std::string> Names(const std::string& conf, const trace::RequestTrace& requests,
                               std::optional<double> fraction = std::nullopt,
                               policy::Compat compat = policy::Compat::kTorch210) {
  std::vector<std::string> out;
  for (const Risk& risk : RisksOf(*policy::ParseConf(conf, compat), SizesOf(requests), fraction)) {
    EXPECT_FALSE(risk.sentence.empty() || risk.source.empty()) << risk.name;
    out.push_back(risk.name);
  }
  return out;
}

TEST(RiskTest, Flags) {
  tests::RequestList list;
  for (int i = 0; i < 10; ++i) list.Allocate(100 * kMiB);
  const trace::RequestTrace& big = list.trace();
  EXPECT_THAT(Names("", big), IsEmpty());
  EXPECT_THAT(Names("max_split_size_mb:64", big), ElementsAre("split_limit_below_frequent_sizes"));
  EXPECT_THAT(Names("max_split_size_mb:101", big), IsEmpty());
  EXPECT_THAT(Names("max_split_size_mb:200,expandable_segments:True", big),
              ElementsAre("split_limit_with_expandable", "expandable_is_not_everywhere"));
  EXPECT_THAT(Names("max_split_size_mb:20", tests::RequestList().trace()),
              ElementsAre("split_limit_equals_large_segment"));
  EXPECT_THAT(Names("garbage_collection_threshold:0.8", big), ElementsAre("threshold_without_fraction"));
  EXPECT_THAT(Names("garbage_collection_threshold:0.8", big, 0.9), IsEmpty());
  EXPECT_THAT(Names("garbage_collection_threshold:0.8,per_process_memory_fraction:0.5", big), IsEmpty());
  // A fraction of 1 is a limit until 2.6 and none later.
  EXPECT_THAT(Names("garbage_collection_threshold:0.8", big, 1.0), ElementsAre("threshold_without_fraction"));
  EXPECT_THAT(Names("garbage_collection_threshold:0.8", big, 1.0, policy::Compat::kTorch26), IsEmpty());
  EXPECT_THAT(Names("large_segment_size_mb:32", big), ElementsAre("recent_key"));
  // 100 MiB is between 64 and 128: halves make 128 of it, 28 too many; 132 MiB becomes 192, 60 too many.
  EXPECT_THAT(Names("roundup_power2_divisions:2", big), IsEmpty());
  list.Allocate(132 * kMiB);
  EXPECT_THAT(Names("roundup_power2_divisions:2", list.trace()), ElementsAre("rounding_of_big_tensors"));
  EXPECT_FALSE(RetryRisk(9, 0).has_value());
  ASSERT_TRUE(RetryRisk(12, 2).has_value());
  EXPECT_EQ(RetryRisk(12, 2)->level, RiskLevel::kCaution);
  EXPECT_FALSE(RetryRisk(12, 3).has_value());
}

TEST(RiskTest, AFewBigRequestsAmongManyAreNotFrequent) {
  tests::RequestList list;
  for (int i = 0; i < 9; ++i) list.Allocate(100 * kMiB);
  EXPECT_THAT(Names("max_split_size_mb:64", list.trace()), IsEmpty());  // nine
  list.Allocate(100 * kMiB);
  EXPECT_THAT(Names("max_split_size_mb:64", list.trace()), ElementsAre("split_limit_below_frequent_sizes"));
  for (int i = 0; i < 91; ++i) list.Allocate(2 * kMiB);
  EXPECT_THAT(Names("max_split_size_mb:64", list.trace()), IsEmpty());  // 10 of 101
}

// The words carry the risk of what is advised, and of what is kept.
TEST(AdviceTest, SaysThePrice) {
  const auto row = [](const char* conf, std::uint64_t peak, std::vector<Risk> risks) {
    WhatIfRow out;
    out.conf = conf;
    out.peak_reserved_bytes = peak;
    out.risks = std::move(risks);
    return out;
  };
  const Risk caution{"x", RiskLevel::kCaution, "it is slow", "a thread"};
  const Risk bad{"y", RiskLevel::kNotRecommended, "it leaks", "another"};
  EXPECT_THAT(Advise({row("", 100, {}), row("a:1", 50, {caution})}).sentence,
              HasSubstr("a:1 lowers the peak of reserved memory by 50 B (50.0 %); its price: it is slow (a thread)"));
  const Advice kept = Advise({row("b:1", 100, {bad}), row("", 100, {})}, "the 2 settings tried");
  EXPECT_FALSE(kept.paste.has_value());
  EXPECT_THAT(kept.sentence, HasSubstr("nothing to change: none of the 2 settings tried lowers"));
  EXPECT_THAT(kept.sentence, HasSubstr("b:1 is not recommended: it leaks (another)"));
  EXPECT_FALSE(Advise({row("", 100, {}), row("b:1", 50, {bad})}).paste.has_value());
}

}  // namespace
}  // namespace ashlar::whatif
