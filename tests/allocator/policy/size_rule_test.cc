// The size rule at its boundaries. The numbers are worked out by hand from the rule's text.
#include "allocator/policy/size_rule.h"

#include <cstdint>
#include <initializer_list>

#include "allocator/base/rng.h"
#include "allocator/policy/strategy.h"
#include "gtest/gtest.h"

namespace ashlar::policy {
namespace {

Options Conf(const char* conf, Compat compat) { return *ParseConf(conf, compat); }

struct Case {
  std::uint64_t request_bytes;
  std::uint64_t rounded_bytes;
};

void Check(const Options& options, std::initializer_list<Case> cases) {
  for (const Case& c : cases) EXPECT_EQ(RoundedBytes(c.request_bytes, options), c.rounded_bytes) << c.request_bytes;
}

TEST(SizeRuleTest, MultiplesOf512ByDefault) {
  Check(Options{}, {{1, 512},
                    {511, 512},
                    {512, 512},
                    {513, 1024},
                    {1'048'064, 1'048'064},
                    {1'048'065, 1'048'576},
                    {1'048'576, 1'048'576},
                    {1'048'577, 1'049'088},
                    {kMaxRequestBytes, kMaxRequestBytes}});
}

TEST(SizeRuleTest, TheRoundedSizeChoosesThePool) {
  EXPECT_TRUE(IsSmall(RoundedBytes(1'048'065, Options{})));
  EXPECT_TRUE(IsSmall(RoundedBytes(1'048'576, Options{})));
  EXPECT_FALSE(IsSmall(RoundedBytes(1'048'577, Options{})));
}

TEST(SizeRuleTest, SegmentSizes) {
  const Options options;
  EXPECT_EQ(SegmentBytes(512, options), 2 * kMiB);
  EXPECT_EQ(SegmentBytes(kMiB, options), 2 * kMiB);
  EXPECT_EQ(SegmentBytes(kMiB + 512, options), 20 * kMiB);
  EXPECT_EQ(SegmentBytes(10 * kMiB - 512, options), 20 * kMiB);
  EXPECT_EQ(SegmentBytes(10 * kMiB, options), 10 * kMiB);
  EXPECT_EQ(SegmentBytes(10 * kMiB + 512, options), 12 * kMiB);
  EXPECT_EQ(SegmentBytes(12 * kMiB, options), 12 * kMiB);
}

TEST(SizeRuleTest, LargeSegmentSizeServesTheMiddleOnly) {
  for (const std::uint64_t mib : {12, 64}) {
    Options options;
    options.large_segment_bytes = mib * kMiB;
    EXPECT_EQ(SegmentBytes(kMiB, options), 2 * kMiB);
    EXPECT_EQ(SegmentBytes(5 * kMiB, options), mib * kMiB);
    EXPECT_EQ(SegmentBytes(10 * kMiB, options), 10 * kMiB);
    EXPECT_EQ(PageBytes(false, options), mib * kMiB);
    EXPECT_EQ(PageBytes(true, options), 2 * kMiB);
  }
}

TEST(SizeRuleTest, PowerOfTwoDivisions) {
  // Four steps between 4 KiB and 8 KiB; up to 4 * 512 B only multiples of 512.
  Check(Conf("roundup_power2_divisions:4", Compat::kTorch26), {{1, 512},
                                                               {1500, 1536},
                                                               {2048, 2048},
                                                               {2049, 2560},
                                                               {4096, 4096},
                                                               {4097, 5120},
                                                               {5121, 6144},
                                                               {7169, 8192},
                                                               {kMiB + 1, kMiB + 256 * kKiB}});
  // With one division there is nothing between powers of two to round to: multiples of 512.
  Check(Conf("roundup_power2_divisions:1", Compat::kTorch26), {{513, 1024}, {5000, 5120}, {kMiB + 1, kMiB + 512}});
}

TEST(SizeRuleTest, OneDivisionIn113LeavesTheRequestAsItIs) {
  Check(Conf("roundup_power2_divisions:1", Compat::kTorch113),
        {{1, 512}, {511, 512}, {512, 512}, {513, 513}, {5000, 5000}, {1'048'577, 1'048'577}});
}

TEST(SizeRuleTest, BypassThresholdOf113) {
  const Options options = Conf("roundup_power2_divisions:4,roundup_bypass_threshold_mb:8", Compat::kTorch113);
  Check(options, {{5 * kMiB + 1, 6 * kMiB}, {8 * kMiB - 1, 8 * kMiB}, {8 * kMiB + 1, 8 * kMiB + 512}});
}

TEST(SizeRuleTest, IntervalsOfAList) {
  // 2 divisions below 8 MiB, 4 from 8 to 16 MiB, none from 16 to 32 MiB, 8 from 32 to 64 MiB, 16 from 64 MiB on.
  const Options options = Conf("roundup_power2_divisions:[1:2,2:2,4:2,8:4,32:8,>:16]", Compat::kTorchLatest);
  Check(options, {{5000, 6144},
                  {kMiB + 1, kMiB + kMiB / 2},
                  {2 * kMiB + 1, 3 * kMiB},
                  {8 * kMiB + 1, 10 * kMiB},
                  {16 * kMiB + 1, 16 * kMiB + 512},
                  {32 * kMiB + 1, 36 * kMiB},
                  {64 * kMiB + 1, 68 * kMiB},
                  {(std::uint64_t{1} << 36) + 1, (std::uint64_t{1} << 36) + (std::uint64_t{1} << 32)}});
}

// Against the definition by search: the smallest allowed size that is not below the request.
TEST(SizeRuleTest, RoundsToTheNextAllowedSize) {
  Rng rng(5);
  for (const std::uint64_t divisions : {2, 4, 8, 16}) {
    Options options;
    options.roundup_power2_divisions.fill(divisions);
    for (int i = 0; i < 2000; ++i) {
      const std::uint64_t request_bytes = rng.Between(512 * divisions + 1, std::uint64_t{1} << rng.Between(14, 40));
      std::uint64_t power = 512;
      while (power * 2 <= request_bytes) power *= 2;
      std::uint64_t expected = power;
      while (expected < request_bytes) expected += power / divisions;
      ASSERT_EQ(RoundedBytes(request_bytes, options), expected) << request_bytes << " by " << divisions;
    }
  }
}

}  // namespace
}  // namespace ashlar::policy
