// Request lists whose best setting is known by construction.
#include "analyzer/whatif/what_if.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "analyzer/whatif/advice.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/analyzer/whatif/request_list.h"

namespace ashlar::whatif {
namespace {

using testing::HasSubstr;
using tests::RequestList;

// Big blocks are cut by small ones that stay, so that the same sizes, asked again, need new segments. A block of 100
// MiB goes back whole under max_split_size_mb:64, and pages go back under expandable segments.
trace::RequestTrace Fragmenting() {
  RequestList out;
  for (int round = 0; round < 4; ++round) {
    const std::uint32_t big = out.Allocate(100 * kMiB);
    out.Free(big);
    out.Allocate(12 * kMiB);  // stays, in the hole of the big one
  }
  out.Allocate(100 * kMiB);
  return out.trace();
}

std::vector<WhatIfRow> MustRun(const trace::RequestTrace& requests, const std::string& baseline,
                               std::optional<std::uint64_t> capacity_bytes, std::vector<std::string> confs = {},
                               policy::Compat compat = policy::Compat::kTorch210) {
  WhatIfSettings settings;
  settings.baseline = *policy::ParseConf(baseline, compat);
  settings.capacity_bytes = capacity_bytes;
  settings.confs = std::move(confs);
  absl::StatusOr<std::vector<WhatIfRow>> rows = RunWhatIfs(requests, settings);
  EXPECT_TRUE(rows.ok()) << rows.status();
  return *std::move(rows);
}

const WhatIfRow& Row(const std::vector<WhatIfRow>& rows, const std::string& conf) {
  for (const WhatIfRow& row : rows) {
    if (row.conf == conf) return row;
  }
  ADD_FAILURE() << "no row " << conf;
  return rows.front();
}

TEST(WhatIfTest, TheBaselineComesFirstAndOnce) {
  const std::vector<WhatIfRow> rows = MustRun(Fragmenting(), "max_split_size_mb:128", kGiB);
  EXPECT_EQ(rows.size(), StandardConfs().size());
  EXPECT_EQ(rows.front().conf, "max_split_size_mb:128");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].is_baseline, i == 0);
    EXPECT_EQ(rows[i].conf == "max_split_size_mb:128", i == 0);
  }
  // A baseline that is no standard row adds one.
  EXPECT_EQ(MustRun(Fragmenting(), "max_split_size_mb:99", kGiB).size(), StandardConfs().size() + 1);
}

// By hand: four rounds of 100 MiB and 12 MiB. Cut blocks: 100 (first), the 12s in its hole, then the 100s no longer
// fit: each round but the first needs a new segment or reuses the last one's rest.
TEST(WhatIfTest, ASettingThatMakesItFitIsPasted) {
  const std::uint64_t capacity = 170 * kMiB;  // 148 MiB live at the end
  const std::vector<WhatIfRow> rows = MustRun(Fragmenting(), "", capacity);
  EXPECT_EQ(rows.front().feasible, false);
  EXPECT_GT(rows.front().ooms, 0u);
  EXPECT_EQ(Row(rows, "expandable_segments:True").feasible, true);
  const Advice advice = Advise(rows);
  // The best row is the feasible one with the lowest peak.
  const WhatIfRow* best = nullptr;
  for (const WhatIfRow& row : rows) {
    if (row.feasible == true && (best == nullptr || row.peak_reserved_bytes < best->peak_reserved_bytes)) best = &row;
  }
  ASSERT_NE(best, nullptr);
  EXPECT_LE(best->peak_reserved_bytes, capacity);
  EXPECT_EQ(advice.paste, "export PYTORCH_CUDA_ALLOC_CONF=" + best->conf);
  EXPECT_THAT(advice.sentence, HasSubstr(best->conf + " would have fitted"));
}

TEST(WhatIfTest, BelowThePeakRequestedNothingHelps) {
  const std::vector<WhatIfRow> rows = MustRun(Fragmenting(), "", 147 * kMiB);
  for (const WhatIfRow& row : rows) {
    EXPECT_EQ(row.feasible, false) << row.conf;
    EXPECT_GT(row.ooms, 0u) << row.conf;
  }
  const Advice advice = Advise(rows);
  EXPECT_FALSE(advice.paste.has_value());
  EXPECT_THAT(advice.sentence, HasSubstr("none of these settings would have made it fit"));
}

TEST(WhatIfTest, WithoutACapacityFeasibleIsNotKnown) {
  const std::vector<WhatIfRow> rows = MustRun(Fragmenting(), "", std::nullopt);
  for (const WhatIfRow& row : rows) {
    EXPECT_FALSE(row.feasible.has_value()) << row.conf;
    EXPECT_EQ(row.ooms, 0u) << row.conf;
    EXPECT_GE(row.peak_reserved_bytes, 148 * kMiB) << row.conf;
  }
  // Still worth pasting: the peak falls.
  const Advice advice = Advise(rows);
  ASSERT_TRUE(advice.paste.has_value());
  EXPECT_THAT(advice.sentence, HasSubstr("lowers the peak of reserved memory by"));
}

TEST(WhatIfTest, WhereNothingIsGainedNothingIsPasted) {
  RequestList requests;
  for (int i = 0; i < 10; ++i) requests.Allocate(20 * kMiB);
  const Advice advice = Advise(MustRun(requests.trace(), "", kGiB));
  EXPECT_FALSE(advice.paste.has_value());
  EXPECT_THAT(advice.sentence, HasSubstr("none of these settings lowers"));
}

TEST(WhatIfTest, TheDefaultsCanBeTheRemedy) {
  // 33 MiB requests become 40 MiB under four divisions: the setting itself is the trouble.
  RequestList requests;
  for (int i = 0; i < 10; ++i) requests.Allocate(33 * kMiB);
  const std::vector<WhatIfRow> rows = MustRun(requests.trace(), "roundup_power2_divisions:4", 350 * kMiB, {""});
  EXPECT_EQ(rows.front().feasible, false);
  const Advice advice = Advise(rows);
  EXPECT_EQ(advice.paste, "unset PYTORCH_CUDA_ALLOC_CONF");
  EXPECT_THAT(advice.sentence, HasSubstr("the default settings would have fitted"));
}

// Rows for which everything is given: no replay between the rule and the test.
TEST(AdviseTest, TakesTheLowestPeakThatFits) {
  const auto row = [](const char* conf, std::uint64_t peak, std::uint64_t ooms, std::uint64_t calls) {
    WhatIfRow out;
    out.conf = conf;
    out.peak_reserved_bytes = peak;
    out.ooms = ooms;
    out.driver_calls = calls;
    out.feasible = ooms == 0;
    return out;
  };
  EXPECT_EQ(Advise({row("", 10, 1, 1), row("a:1", 8, 1, 1), row("b:1", 9, 0, 1)}).paste,
            "export PYTORCH_CUDA_ALLOC_CONF=b:1");
  EXPECT_EQ(Advise({row("", 10, 1, 1), row("a:1", 9, 0, 5), row("b:1", 9, 0, 4)}).paste,
            "export PYTORCH_CUDA_ALLOC_CONF=b:1");
  // 10 % is worth a setting, less is not.
  EXPECT_TRUE(Advise({row("", 1000, 0, 1), row("a:1", 899, 0, 1)}).paste.has_value());
  EXPECT_FALSE(Advise({row("", 1000, 0, 1), row("a:1", 901, 0, 1)}).paste.has_value());
  EXPECT_THAT(Advise({row("", 1000, 0, 1), row("a:1", 930, 0, 1)}).sentence,
              HasSubstr("nothing to change: a:1 would lower the peak of reserved memory by 70 B (7.0 %)"));
  // Of a run that was cut off nothing is promised but what a projection shows.
  std::vector<WhatIfRow> cut = {row("", 10, 1, 1), row("a:1", 9, 0, 1)};
  for (WhatIfRow& one : cut) one.is_cut_off = true;
  EXPECT_FALSE(Advise(cut).paste.has_value());
  EXPECT_THAT(Advise(cut).sentence, HasSubstr("a:1 gets past this request; beyond it nothing is known"));
  cut[1].projected = ProjectedPart{.requests = 40, .peak_reserved_bytes = 990, .available_bytes = 1000};
  EXPECT_EQ(Advise(cut).paste, "export PYTORCH_CUDA_ALLOC_CONF=a:1");
  cut[1].projected->peak_reserved_bytes = 991;  // less than 1 % is left
  EXPECT_FALSE(Advise(cut).paste.has_value());
  EXPECT_THAT(Advise(cut).sentence, HasSubstr("too little to spare for a promise"));
  cut[1].projected->ooms = 1;
  cut[1].projected->failed_after = 3;
  cut[1].projected->needed_bytes = 12 * kMiB;
  cut[1].projected->available_bytes = 10 * kMiB;
  EXPECT_FALSE(Advise(cut).paste.has_value());
  EXPECT_THAT(Advise(cut).sentence, HasSubstr("then fails again 3 requests later: 12.00 MiB needed of 10.00 MiB"));
  // A lower peak by failing is no gain.
  EXPECT_FALSE(Advise({row("", 1000, 0, 1), row("a:1", 500, 1, 1)}).paste.has_value());
  EXPECT_THAT(Advise({row("", 10, 5, 1), row("a:1", 10, 2, 1)}).sentence, HasSubstr("a:1 comes closest (2 failed"));
  EXPECT_TRUE(Advise({}).sentence.empty());
}

TEST(WhatIfTest, VersionsLeaveOutWhatTheyDoNotKnow) {
  const std::vector<WhatIfRow> rows = MustRun(Fragmenting(), "", kGiB, {}, policy::Compat::kTorch113);
  for (const WhatIfRow& row : rows) EXPECT_NE(row.conf, "expandable_segments:True");
  WhatIfSettings settings;
  settings.baseline = *policy::ParseConf("", policy::Compat::kTorch113);
  settings.confs = {"expandable_segments:True"};  // asked for by name: an error
  EXPECT_FALSE(RunWhatIfs(Fragmenting(), settings).ok());
}

TEST(WhatIfTest, AMemoryFractionIsALimitInEveryRow) {
  WhatIfSettings settings;
  settings.baseline = *policy::ParseConf("", policy::Compat::kTorch210);
  settings.capacity_bytes = kGiB;
  settings.memory_fraction = 0.1;
  const absl::StatusOr<std::vector<WhatIfRow>> rows = RunWhatIfs(Fragmenting(), settings);
  ASSERT_TRUE(rows.ok());
  for (const WhatIfRow& row : *rows) {
    EXPECT_GT(row.ooms, 0u) << row.conf;
    EXPECT_LE(row.peak_reserved_bytes, 103 * kMiB) << row.conf;
  }
}

// 50 MiB, then 40 MiB that failed in the record, then what is projected.
analyses::Continuation Continued(const std::vector<std::uint64_t>& projected_mib) {
  RequestList list;
  list.Allocate(50 * kMiB);
  list.Allocate(40 * kMiB);
  for (const std::uint64_t mib : projected_mib) list.Allocate(mib * kMiB);
  analyses::Continuation out;
  out.requests = list.trace();
  out.failed = 1;
  if (!projected_mib.empty()) out.periods = {list.trace().requests.size()};
  return out;
}

WhatIfRow BaselineRow(const analyses::Continuation& next, std::uint64_t capacity_bytes) {
  trace::RequestTrace recorded = next.requests;
  recorded.requests.resize(next.failed + 1);
  WhatIfSettings settings;
  settings.capacity_bytes = capacity_bytes;
  settings.is_cut_off = true;
  const absl::StatusOr<std::vector<WhatIfRow>> rows = RunWhatIfs(recorded, settings, {}, &next);
  EXPECT_TRUE(rows.ok()) << rows.status();
  return rows->front();
}

TEST(WhatIfTest, ARowSaysWhatComesAfterTheRequestThatFailed) {
  const WhatIfRow row = BaselineRow(Continued({20, 60, 10}), 128 * kMiB);
  EXPECT_EQ(row.gets_past, true);
  EXPECT_EQ(row.peak_allocated_bytes, 90 * kMiB) << "a row's own figures are of the recorded part";
  EXPECT_EQ(row.ooms, 0u);
  ASSERT_TRUE(row.projected.has_value());
  EXPECT_EQ(row.projected->ooms, 1u);
  EXPECT_EQ(row.projected->failed_after, 2u);
  EXPECT_EQ(row.projected->failed_steps_later, 0u);
  EXPECT_EQ(row.projected->needed_bytes, 170 * kMiB);
  EXPECT_EQ(row.projected->available_bytes, 128 * kMiB);
  EXPECT_FALSE(row.CarriesThrough());
}

TEST(WhatIfTest, ARowThatIsCarriedThroughHasThePeakOfWhatIsProjected) {
  const WhatIfRow row = BaselineRow(Continued({20, 60, 10}), 256 * kMiB);
  ASSERT_TRUE(row.projected.has_value());
  EXPECT_EQ(row.projected->ooms, 0u);
  EXPECT_EQ(row.projected->requests, 3u);
  EXPECT_EQ(row.projected->peak_reserved_bytes, 180 * kMiB);
  EXPECT_TRUE(row.CarriesThrough());
}

TEST(WhatIfTest, AProjectedLeakSaysWhenTheMemoryIsFull) {
  analyses::Continuation next = Continued({20});
  next.growth_bytes_per_step = 20 * kMiB;
  const WhatIfRow row = BaselineRow(next, 200 * kMiB);
  ASSERT_TRUE(row.projected.has_value());
  EXPECT_EQ(row.projected->ooms, 1u);
  EXPECT_EQ(row.projected->failed_steps_later, 5u);  // 90 MiB are left by the cut-off one
  EXPECT_EQ(row.projected->needed_bytes, 210 * kMiB);
  EXPECT_FALSE(row.CarriesThrough());
}

TEST(WhatIfTest, NothingIsProjectedWhereNothingIsKnownOrTheRequestFailsAgain) {
  const WhatIfRow unknown = BaselineRow(Continued({}), 128 * kMiB);
  EXPECT_EQ(unknown.gets_past, true);
  EXPECT_FALSE(unknown.projected.has_value());
  const WhatIfRow failed = BaselineRow(Continued({20}), 80 * kMiB);
  EXPECT_EQ(failed.gets_past, false);
  EXPECT_FALSE(failed.projected.has_value());
  EXPECT_EQ(failed.ooms, 1u);
}

// Counts how many rows it watches at once.
class CountingWatch final : public WhatIfWatch {
 public:
  explicit CountingWatch(std::size_t most) : most_(most) {}

  std::size_t MostAtOnce() const override { return most_; }
  replay::OpSink* Begin(std::size_t) override {
    const std::lock_guard lock(mutex_);
    seen_ = std::max(seen_, ++open_);
    return nullptr;
  }
  absl::Status End(std::size_t, const WhatIfRow&) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // others may begin
    const std::lock_guard lock(mutex_);
    --open_;
    return absl::OkStatus();
  }
  std::size_t seen() const { return seen_; }

 private:
  const std::size_t most_;
  std::mutex mutex_;
  std::size_t open_ = 0, seen_ = 0;
};

TEST(WhatIfTest, NoMoreRowsAreWatchedAtOnceThanAWatchMay) {
  for (const std::size_t most : {1u, 2u}) {
    CountingWatch watch(most);
    WhatIfSettings settings;
    settings.threads = 4;
    const absl::StatusOr<std::vector<WhatIfRow>> rows = RunWhatIfs(Fragmenting(), settings, {}, nullptr, &watch);
    ASSERT_TRUE(rows.ok()) << rows.status();
    EXPECT_LE(watch.seen(), most);
    EXPECT_EQ(rows->size(), StandardConfs().size());
  }
}

}  // namespace
}  // namespace ashlar::whatif
