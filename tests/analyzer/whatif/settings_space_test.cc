// The space holds only settings its versions know, and its split limits stand for all even ones.
#include "analyzer/whatif/settings_space.h"

#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "analyzer/whatif/risk.h"
#include "analyzer/whatif/what_if.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/analyzer/whatif/request_list.h"

namespace ashlar::whatif {
namespace {

using policy::Compat;
using testing::ElementsAre;
using testing::IsEmpty;
using tests::RandomRequests;
using tests::RequestList;

constexpr Compat kAllVersions[] = {Compat::kTorch113, Compat::kTorch26, Compat::kTorch210, Compat::kTorchLatest};

std::vector<RequestSize> Sizes(std::initializer_list<std::uint64_t> bytes) {
  RequestList list;
  for (const std::uint64_t size : bytes) list.Allocate(size);
  return SizesOf(list.trace());
}

TEST(SettingsSpaceTest, SizesAreCountedAscending) {
  const std::vector<RequestSize> sizes = Sizes({30, 5, 30, 0});
  ASSERT_EQ(sizes.size(), 2u);
  EXPECT_EQ(sizes[0].bytes, 5u);
  EXPECT_EQ(sizes[1].bytes, 30u);
  EXPECT_EQ(sizes[1].count, 2u);
  EXPECT_EQ(MergedSizes(sizes, sizes)[1].count, 4u);
}

// By hand. A request of 30 MiB (a segment of 30) is at or above limits up to 30 and below 32 and more: 22 stands for 22
// to 30; from 32 on nothing is cut off. One of 33 MiB has a segment of 34: below a limit of 34, but its segment is not.
TEST(SettingsSpaceTest, SplitLimitsByHand) {
  const policy::Options options;
  EXPECT_THAT(SplitLimits(Sizes({30 * kMiB}), options, 20), ElementsAre(22));
  EXPECT_THAT(SplitLimits(Sizes({33 * kMiB}), options, 20), ElementsAre(22, 34));
  EXPECT_THAT(SplitLimits(Sizes({30 * kMiB, 33 * kMiB}), options, 20), ElementsAre(22, 32, 34));
  EXPECT_THAT(SplitLimits(Sizes({30 * kMiB, 33 * kMiB}), options, 32), ElementsAre(34));
  EXPECT_THAT(SplitLimits(Sizes({512, 5 * kMiB, 20 * kMiB}), options, 20), IsEmpty());
  policy::Options halves;
  halves.roundup_power2_divisions.fill(2);  // 33 MiB takes 48
  EXPECT_THAT(SplitLimits(Sizes({33 * kMiB}), halves, 20), ElementsAre(22));
}

// Every even limit gives the figures of the limit that stands for it, with and without a capacity.
TEST(SettingsSpaceTest, OneLimitStandsForAllThatDecideAlike) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const trace::RequestTrace requests = RandomRequests(seed, 400, 6, 60 * kMiB);
    const std::vector<RequestSize> sizes = SizesOf(requests);
    for (const Compat compat : {Compat::kTorch26, Compat::kTorchLatest}) {
      WhatIfSettings settings;
      if (seed % 2 == 0) settings.capacity_bytes = 600 * kMiB;
      const auto figures = [&](std::uint64_t limit_mb) {
        const std::string conf = limit_mb == 0 ? "" : "max_split_size_mb:" + std::to_string(limit_mb);
        const WhatIfRow row = *ReplayUnder(requests, sizes, settings, *policy::ParseConf(conf, compat));
        return std::tuple(row.peak_reserved_bytes, row.peak_allocated_bytes, row.ooms, row.driver_calls, row.retries);
      };
      policy::Options options;
      options.compat = compat;
      const std::vector<std::uint64_t> limits = SplitLimits(sizes, options, 20);
      for (std::uint64_t even = 22; even <= 70; even += 2) {
        std::uint64_t standing = 0;  // above all sizes: as without a limit
        const std::uint64_t largest_mb = RoundUp(sizes.back().bytes, 2 * kMiB) / kMiB;
        for (const std::uint64_t limit : limits) {
          if (limit <= even && even <= largest_mb) standing = limit;
        }
        EXPECT_EQ(figures(even), figures(standing))
            << "limit " << even << " against " << standing << ", seed " << seed << "\n"
            << tests::PlainTrace(requests);
      }
    }
  }
}

TEST(SettingsSpaceTest, EveryOfferedConfIsKnownToItsVersionsAndNotKnownToBeBad) {
  const std::vector<RequestSize> sizes = SizesOf(RandomRequests(3, 300, 12, 200 * kMiB));
  for (const Compat compat : kAllVersions) {
    for (const bool has_limit : {false, true}) {
      const SettingsSpace space(sizes, {{compat}, has_limit});
      const std::vector<SettingPoint> all = space.All();
      EXPECT_EQ(all.size(), space.Size());
      EXPECT_EQ(all.front(), SettingPoint{});
      std::set<std::string> confs;
      bool has_expandable = false, has_threshold = false, has_large = false, has_rounding = false;
      for (const SettingPoint& setting : all) {
        const std::string conf = ConfOf(setting);
        EXPECT_TRUE(confs.insert(conf).second) << conf;
        const absl::StatusOr<policy::Options> options = policy::ParseConf(conf, compat);
        ASSERT_TRUE(options.ok()) << options.status();
        EXPECT_LT(WorstLevel(RisksOf(*options, sizes, has_limit ? std::optional(0.9) : std::nullopt)),
                  RiskLevel::kNotRecommended)
            << conf;
        EXPECT_EQ(SettingOf(*options), setting) << conf;
        has_expandable |= setting.expandable;
        has_threshold |= setting.threshold_percent > 0;
        has_large |= setting.large_segment_mb > 0;
        has_rounding |= setting.non_split_rounding_mb > 0;
      }
      const bool is_late = compat == Compat::kTorch210 || compat == Compat::kTorchLatest;
      EXPECT_EQ(has_expandable, compat != Compat::kTorch113);
      EXPECT_EQ(has_rounding, compat != Compat::kTorch113);
      EXPECT_EQ(has_large, is_late);
      EXPECT_EQ(has_threshold, has_limit);
      for (const SettingPoint& setting : space.CoarseGrid())
        EXPECT_EQ(confs.count(ConfOf(setting)), 1u) << ConfOf(setting);
      for (const SettingPoint& from : {all.front(), all[all.size() / 2], all.back()}) {
        for (const SettingPoint& next : space.Neighbours(from, {})) {
          EXPECT_EQ(confs.count(ConfOf(next)), 1u) << ConfOf(from) << " -> " << ConfOf(next);
        }
      }
    }
  }
}

TEST(SettingsSpaceTest, SeveralVersionsOfferWhatAllKnow) {
  const SettingsSpace space(Sizes({100 * kMiB}), {{Compat::kTorchLatest, Compat::kTorch113}, false});
  for (const SettingPoint& setting : space.All()) {
    for (const Compat compat : {Compat::kTorchLatest, Compat::kTorch113}) {
      EXPECT_TRUE(policy::ParseConf(ConfOf(setting), compat).ok()) << ConfOf(setting);
    }
  }
}

TEST(ConfTextTest, RoundTripsAndKeepsWhatIsNotSearched) {
  EXPECT_EQ(ConfOf({}), "");
  EXPECT_EQ(ConfOf({false, 128, 64, 32, 4, 80}),
            "max_split_size_mb:128,max_non_split_rounding_mb:64,large_segment_size_mb:32,roundup_power2_divisions:4,"
            "garbage_collection_threshold:0.80");
  EXPECT_EQ(CarriedConf("backend:native, max_split_size_mb:64,roundup_power2_divisions:[256:1,>:2],"
                        "per_process_memory_fraction:0.5"),
            "backend:native,per_process_memory_fraction:0.5");
  EXPECT_EQ(CarriedConf("expandable_segments:True"), "");
  EXPECT_EQ(JoinConfs("a:1", ""), "a:1");
  EXPECT_EQ(JoinConfs("a:1", "b:2"), "a:1,b:2");
  EXPECT_EQ(KeyCount(""), 0u);
  EXPECT_EQ(KeyCount("a:[1:2,3:4],b:1,"), 2u);
}

TEST(ConfTextTest, SettingsThatTheSearchCannotNameAreNullopt) {
  for (const char* conf : {"roundup_power2_divisions:[1:2,2:4]", "throw_on_cudamalloc_oom:True",
                           "garbage_collection_threshold:0.805", "per_process_memory_fraction:0.5"}) {
    EXPECT_FALSE(SettingOf(*policy::ParseConf(conf, Compat::kTorch210)).has_value()) << conf;
  }
  EXPECT_TRUE(
      SameDecisions(*policy::ParseConf("max_split_size_mb:64", Compat::kTorch210),
                    *policy::ParseConf(" max_split_size_mb : 64 , pinned_num_register_threads:2", Compat::kTorch210)));
  EXPECT_FALSE(SameDecisions(*policy::ParseConf("max_split_size_mb:64", Compat::kTorch210),
                             *policy::ParseConf("max_split_size_mb:66", Compat::kTorch210)));
}

}  // namespace
}  // namespace ashlar::whatif
