// Shuffles, replayed from lists of requests, against dry runs in the device's own memory; and a recorded list against
// its run.
#include "estimator/levers/shuffles.h"

#include <algorithm>
#include <vector>

#include "analyzer/replay/request_replay.h"
#include "estimator/dry_run.h"
#include "estimator/run_observer.h"
#include "gmock/gmock.h"
#include "tests/estimator/model_file.h"

namespace ashlar::estimate {
namespace {

Model TwoLayers() { return SmallBert(2, 128, 1000); }

Estimate EstimateOf(std::uint64_t capacity_bytes) {
  EstimateOptions options;
  options.run.batch = 32;
  options.run.torch_version = "1.10";
  options.run.optimizer = "adamw-hf";
  options.lengths = *NormalLengths("mean:60,sd:50,max:512", {.samples = 400});
  options.runs_an_epoch = true;
  options.context_bytes = 0;
  options.capacity_bytes = capacity_bytes + 18 * kMiB;  // of cuBLAS
  return MustEstimate(TwoLayers(), options);
}

TEST(RequestListTest, ReplaysToThePeaksOfItsRun) {
  for (const char* conf : {"", "max_split_size_mb:64", "expandable_segments:True"}) {
    DryRunOptions options{.batch = 16, .tokens = 100, .conf = conf};
    RequestList list;
    const DryRun run = *RunDry(TwoLayers(), options, device::AddressOrder::kAscending, &list);
    replay::RequestReplay replay({*policy::ParseConf(conf, CompatOf("2.6")), {.capacity_bytes = 64 * kGiB}, {}});
    ASSERT_TRUE(replay.Run(list.requests()).ok());
    const core::Stats& stats = replay.allocator().stats();
    EXPECT_EQ(static_cast<std::uint64_t>(stats.reserved_bytes.all().peak), run.peak_reserved_bytes) << conf;
    EXPECT_EQ(static_cast<std::uint64_t>(stats.requested_bytes.all().peak), run.peak_requested_bytes) << conf;
    EXPECT_EQ(list.StepOf(0), 0);
    EXPECT_EQ(list.StepOf(list.requests().requests.size() - 1), options.steps);
  }
}

TEST(ShufflesTest, AgreeWithRunsInThatMemory) {
  constexpr std::uint64_t kShuffles = 12, kCapacity = 290 * kMiB;
  const Estimate of = EstimateOf(kCapacity);
  const ShuffleResult result = *RunShuffles(of, {.shuffles = kShuffles, .threads = 2});
  std::uint64_t rows = 0, sometimes = 0;
  for (const ShuffleRow& row : result.rows) {
    if (row.needs_fraction) continue;
    ++rows;
    std::vector<std::uint64_t> steps, peaks;
    for (std::uint64_t shuffle = 0; shuffle < kShuffles; ++shuffle) {
      DryRunOptions options = of.run;
      options.conf = row.conf;
      options.batches = EpochOf(*of.lengths, row.batching, 32, shuffle);
      const DryRun limited = *RunDry(of.model, options, device::AddressOrder::kAscending);
      if (!limited.fits) steps.push_back(static_cast<std::uint64_t>(limited.moment.step));
      options.capacity_bytes.reset();
      peaks.push_back(RunDry(of.model, options, device::AddressOrder::kAscending)->peak_reserved_bytes);
    }
    std::sort(steps.begin(), steps.end());
    std::sort(peaks.begin(), peaks.end());
    ASSERT_EQ(row.failed, steps.size()) << BatchingName(row.batching) << " " << row.conf;
    EXPECT_EQ(row.reserved->least, peaks.front());
    EXPECT_EQ(row.reserved->median, peaks[5]);
    EXPECT_EQ(row.reserved->most, peaks.back());
    sometimes += !steps.empty() && steps.size() < kShuffles ? 1 : 0;
    if (steps.empty()) continue;
    EXPECT_EQ(row.failed_step->least, steps.front());
    EXPECT_EQ(row.failed_step->most, steps.back());
  }
  EXPECT_GE(rows, 12u);
  EXPECT_GE(sometimes, 1u);  // the same code fits under some orders and fails under others
}

TEST(ShufflesTest, DoNotDependOnThreads) {
  const Estimate of = EstimateOf(290 * kMiB);
  const ShuffleResult one = *RunShuffles(of, {.shuffles = 5, .threads = 1});
  const ShuffleResult three = *RunShuffles(of, {.shuffles = 5, .threads = 3});
  ASSERT_EQ(one.rows.size(), three.rows.size());
  for (std::size_t i = 0; i < one.rows.size(); ++i) {
    EXPECT_EQ(one.rows[i].failed, three.rows[i].failed);
    EXPECT_EQ(one.rows[i].reserved.has_value(), three.rows[i].reserved.has_value());
    if (!one.rows[i].reserved.has_value()) continue;
    EXPECT_EQ(one.rows[i].reserved->median, three.rows[i].reserved->median);
  }
}

TEST(QuantilesTest, AreOfTheNearestRank) {
  std::vector<std::uint64_t> values;
  for (std::uint64_t i = 100; i > 0; --i) values.push_back(i);
  const Quantiles of = QuantilesOf(values);
  EXPECT_EQ(of.least, 1u);
  EXPECT_EQ(of.median, 50u);
  EXPECT_EQ(of.p95, 95u);
  EXPECT_EQ(of.most, 100u);
  EXPECT_EQ(QuantilesOf({7}).p95, 7u);
  EXPECT_EQ(QuantilesOf({}).most, 0u);
}

}  // namespace
}  // namespace ashlar::estimate
