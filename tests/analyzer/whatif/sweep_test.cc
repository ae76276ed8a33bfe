// The search against the whole grid computed by plain loops, the same rows on any number of threads, and several traces
// against sums written out.
#include "analyzer/whatif/sweep.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "analyzer/whatif/settings_space.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/analyzer/whatif/request_list.h"

namespace ashlar::whatif {
namespace {

using policy::Compat;
using testing::HasSubstr;
using tests::RandomRequests;

WhatIfInput Input(const trace::RequestTrace& requests, const std::string& conf = "",
                  std::optional<std::uint64_t> capacity_bytes = std::nullopt, Compat compat = Compat::kTorch26,
                  std::optional<double> fraction = std::nullopt) {
  ReplayLimits limits;
  limits.capacity_bytes = capacity_bytes;
  limits.memory_fraction = fraction;
  WhatIfInput out = InputOf(requests, *policy::ParseConf(conf, compat), limits);
  out.name = "trace";
  return out;
}

SweepResult MustSweep(const std::vector<WhatIfInput>& inputs, SweepOptions options = {}) {
  absl::StatusOr<SweepResult> result = RunSweep(inputs, options);
  EXPECT_TRUE(result.ok()) << result.status();
  return *std::move(result);
}

using Figures = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>;  // ooms, peak, cost

Figures FiguresOf(const WhatIfRow& row) { return {row.ooms, row.peak_reserved_bytes, row.cost_ns}; }

// Every even split limit, every rounding, thresholds where there is a fraction: no class, no space of the product.
std::vector<std::string> FineGrid(bool has_fraction, std::uint64_t most_mb) {
  std::vector<std::string> splits = {""};
  for (std::uint64_t mb = 22; mb <= most_mb; mb += 2) {
    for (const char* rounding : {"", "max_non_split_rounding_mb:64,", "max_non_split_rounding_mb:256,"}) {
      splits.push_back("max_split_size_mb:" + std::to_string(mb) + "," + rounding);
    }
  }
  splits.push_back("expandable_segments:True,");
  std::vector<std::string> thresholds = {""};
  if (has_fraction) {
    for (const char* t : {"0.6", "0.8", "0.9"}) thresholds.push_back(std::string("garbage_collection_threshold:") + t);
  }
  std::vector<std::string> out;
  for (const std::string& split : splits) {
    for (const char* divisions : {"", "2", "4", "8", "16"}) {
      const std::string rounding = *divisions == 0 ? "" : std::string("roundup_power2_divisions:") + divisions + ",";
      for (const std::string& threshold : thresholds) out.push_back(split + rounding + threshold);
    }
  }
  return out;
}

// The lowest figures of the grid: fewest failures, then the peak, then the cost.
Figures BestOfGrid(const WhatIfInput& input, const std::vector<std::string>& confs) {
  Figures best{std::numeric_limits<std::uint64_t>::max(), 0, 0};
  for (const std::string& conf : confs) {
    const policy::Options options = *policy::ParseConf(conf, input.settings.baseline.compat);
    best = std::min(best, FiguresOf(*ReplayUnder(input.requests, {}, input.settings, options)));
  }
  return best;
}

TEST(SweepTest, ACompleteSearchFindsTheBestOfTheWholeGrid) {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    const bool has_fraction = seed % 2 == 1;
    const trace::RequestTrace requests = RandomRequests(seed, 120, 4, 50 * kMiB);
    const WhatIfInput input = Input(requests, "", seed % 3 == 0 ? std::optional(500 * kMiB) : std::optional(kGiB),
                                    Compat::kTorch26, has_fraction ? std::optional(0.7) : std::nullopt);
    const SweepResult result = MustSweep({input}, {.threads = 1});
    EXPECT_TRUE(result.is_complete);
    EXPECT_EQ(FiguresOf(result.rows.front().traces.front()), BestOfGrid(input, FineGrid(has_fraction, 54)))
        << tests::PlainTrace(requests);
  }
}

// Where the budget does not cover the space the search is a heuristic: on these traces its best peak is within 2 % of
// the whole space's, and never above the coarse grid's.
TEST(SweepTest, ASmallBudgetComesWithinTwoPercent) {
  for (std::uint64_t seed = 20; seed < 26; ++seed) {
    const trace::RequestTrace requests = RandomRequests(seed, 300, 30, 300 * kMiB);
    const WhatIfInput input = Input(requests);
    const SweepResult whole = MustSweep({input}, {.budget_replays = 100'000, .threads = 1});
    const SweepResult part = MustSweep({input}, {.budget_replays = 90, .threads = 1});
    ASSERT_TRUE(whole.is_complete);
    ASSERT_FALSE(part.is_complete);
    EXPECT_LE(part.replays, 91u);
    const auto peak = [](const SweepResult& result) {
      return static_cast<double>(result.rows.front().traces.front().peak_reserved_bytes);
    };
    EXPECT_LE(peak(part), 1.02 * peak(whole))
        << "seed " << seed << ", " << part.rows.front().conf << " against " << whole.rows.front().conf;
    EXPECT_GE(peak(part), peak(whole));
  }
}

// Everything a report prints.
std::string Dump(const SweepResult& result) {
  std::string out = absl::StrCat(result.advice.sentence, result.advice.paste.value_or("-"), result.replays, "\n");
  for (const SweepRow& row : result.rows) {
    absl::StrAppend(&out, row.conf, " ", row.is_baseline, row.is_default, row.is_pareto_best, row.is_recommended, " ",
                    row.score.regret, " ", row.score.cost_ns);
    for (const WhatIfRow& trace : row.traces) {
      absl::StrAppend(&out, " ", trace.peak_reserved_bytes, "/", trace.ooms, "/", trace.driver_calls);
    }
    for (const Risk& risk : row.risks) absl::StrAppend(&out, " ", risk.name);
    out += "\n";
  }
  return out;
}

TEST(SweepTest, TheSameRowsOnAnyNumberOfThreads) {
  const std::vector<WhatIfInput> inputs = {
      Input(RandomRequests(1, 200, 12, 100 * kMiB), "", 2 * kGiB, Compat::kTorch210),
      Input(RandomRequests(2, 200, 12, 100 * kMiB), "max_split_size_mb:64", std::nullopt, Compat::kTorch26)};
  for (const std::uint64_t budget : {80u, 400u}) {
    const std::string one = Dump(MustSweep(inputs, {.budget_replays = budget, .threads = 1}));
    EXPECT_EQ(Dump(MustSweep(inputs, {.budget_replays = budget, .threads = 2})), one);
    EXPECT_EQ(Dump(MustSweep(inputs, {.budget_replays = budget, .threads = 7})), one);
  }
}

TEST(SweepTest, ProgressCountsEveryReplayOnce) {
  std::vector<std::uint64_t> seen;
  SweepOptions options;
  options.threads = 4;
  options.budget_replays = 70;
  options.progress = [&seen](std::uint64_t replays) { seen.push_back(replays); };
  const SweepResult result = MustSweep({Input(RandomRequests(1, 100, 12, 100 * kMiB))}, options);
  ASSERT_EQ(seen.size(), result.replays);
  for (std::size_t i = 0; i < seen.size(); ++i) EXPECT_EQ(seen[i], i + 1);
}

TEST(SweepTest, StopsWhenAsked) {
  SweepOptions options;
  options.should_stop = [] { return true; };
  const SweepResult result = MustSweep({Input(RandomRequests(1, 100, 12, 100 * kMiB))}, options);
  EXPECT_TRUE(result.is_stopped);
  EXPECT_FALSE(result.is_complete);
  EXPECT_LE(result.rows.size(), 33u);  // the recorded settings and one batch
}

// Regrets, failures and sums, from the rows' own figures.
TEST(SweepTest, SeveralTracesAreRankedByTheWorstRegret) {
  const std::vector<WhatIfInput> inputs = {Input(RandomRequests(5, 300, 8, 90 * kMiB), "", 900 * kMiB),
                                           Input(RandomRequests(6, 300, 8, 90 * kMiB), "", 900 * kMiB),
                                           Input(RandomRequests(7, 300, 8, 30 * kMiB), "", 900 * kMiB)};
  const SweepResult result = MustSweep(inputs, {.threads = 1});
  std::vector<double> lowest(inputs.size(), std::numeric_limits<double>::infinity());
  std::vector<double> lowest_of_all = lowest;
  for (const SweepRow& row : result.rows) {
    ASSERT_EQ(row.traces.size(), inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const auto peak = static_cast<double>(row.traces[i].peak_reserved_bytes);
      if (row.traces[i].ooms == 0) lowest[i] = std::min(lowest[i], peak);
      lowest_of_all[i] = std::min(lowest_of_all[i], peak);
    }
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (lowest[i] == std::numeric_limits<double>::infinity()) lowest[i] = lowest_of_all[i];
  }
  for (const SweepRow& row : result.rows) {
    double regret = -1;
    std::size_t failing = 0;
    std::uint64_t cost = 0, calls = 0, ooms = 0;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const WhatIfRow& trace = row.traces[i];
      // The row's figures are those of a replay of its own conf.
      const policy::Options options = *policy::ParseConf(row.conf, Compat::kTorch26);
      if (&row == &result.rows.front()) {
        EXPECT_EQ(FiguresOf(*ReplayUnder(inputs[i].requests, {}, inputs[i].settings, options)), FiguresOf(trace));
      }
      regret = std::max(regret, static_cast<double>(trace.peak_reserved_bytes) / lowest[i] - 1);
      failing += trace.ooms > 0;
      cost += trace.cost_ns;
      calls += trace.driver_calls;
      ooms += trace.ooms;
    }
    EXPECT_DOUBLE_EQ(row.score.regret, regret) << row.conf;
    EXPECT_EQ(row.score.failing_traces, failing) << row.conf;
    EXPECT_EQ(row.score.cost_ns, cost) << row.conf;
    EXPECT_EQ(row.score.driver_calls, calls) << row.conf;
    EXPECT_EQ(row.score.ooms, ooms) << row.conf;
  }
  for (std::size_t i = 1; i < result.rows.size(); ++i) {
    const Score& a = result.rows[i - 1].score;
    const Score& b = result.rows[i].score;
    EXPECT_LE(std::tuple(a.failing_traces, a.ooms, a.regret), std::tuple(b.failing_traces, b.ooms, b.regret)) << i;
  }
  EXPECT_EQ(result.rows[result.baseline].is_baseline, true);
  EXPECT_EQ(std::count_if(result.rows.begin(), result.rows.end(), [](const SweepRow& r) { return r.is_baseline; }), 1);
}

TEST(SweepTest, GivenConfsAreShownWithTheirFlagsAndNothingElseIsTried) {
  const WhatIfInput input = Input(RandomRequests(1, 100, 8, 100 * kMiB), "max_split_size_mb:64");
  const SweepResult result =
      MustSweep({input}, {.confs = {"expandable_segments:True,max_split_size_mb:128", "max_split_size_mb:64",
                                    "garbage_collection_threshold:0.8"}});
  std::map<std::string, const SweepRow*> rows;
  for (const SweepRow& row : result.rows) rows[row.conf] = &row;
  ASSERT_EQ(rows.size(), 4u);  // the third is the recorded one; the defaults are there for comparison
  EXPECT_TRUE(rows.at("max_split_size_mb:64")->is_baseline);
  EXPECT_TRUE(rows.at("")->is_default);
  EXPECT_EQ(rows.at("expandable_segments:True,max_split_size_mb:128")->score.risk, RiskLevel::kNotRecommended);
  EXPECT_EQ(rows.at("garbage_collection_threshold:0.8")->risks.front().name, "threshold_without_fraction");
  EXPECT_FALSE(result.is_search);
  const absl::StatusOr<SweepResult> bad = RunSweep({{input}}, {.confs = {"max_split_size_mb:1"}});
  EXPECT_THAT(std::string(bad.status().message()), HasSubstr("max_split_size_mb"));
  EXPECT_FALSE(RunSweep({}, {}).ok());
}

TEST(SweepTest, OfferedConfsKeepWhatTheRecordedOneSaysBesides) {
  const WhatIfInput input = Input(RandomRequests(1, 100, 8, 100 * kMiB),
                                  "per_process_memory_fraction:0.5,max_split_size_mb:64", 2 * kGiB, Compat::kTorch210);
  const SweepResult result = MustSweep({input}, {.budget_replays = 40});
  bool has_threshold = false;
  for (const SweepRow& row : result.rows) {
    EXPECT_THAT(row.conf, HasSubstr("per_process_memory_fraction:0.5"));
    has_threshold = has_threshold || row.conf.find("garbage_collection_threshold") != std::string::npos;
    EXPECT_EQ(row.is_default, row.conf == "per_process_memory_fraction:0.5");
  }
  EXPECT_TRUE(has_threshold);  // the kept fraction is what a threshold needs
}

TEST(SweepTest, WhereTheDefaultIsBestNothingIsPasted) {
  tests::RequestList list;
  for (int i = 0; i < 20; ++i) list.Allocate(20 * kMiB);
  const SweepResult result = MustSweep({Input(list.trace(), "", kGiB)});
  EXPECT_FALSE(result.advice.paste.has_value());
  EXPECT_EQ(result.choice.kind, ChoiceKind::kKeep);
  EXPECT_TRUE(result.rows[result.choice.row].is_default);
  EXPECT_THAT(result.advice.sentence, HasSubstr("settings tried lowers the peak"));
}

}  // namespace
}  // namespace ashlar::whatif
