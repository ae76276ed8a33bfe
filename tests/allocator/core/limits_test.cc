#include "allocator/core/limits.h"

#include <cstdint>
#include <optional>

#include "allocator/base/units.h"
#include "gtest/gtest.h"

namespace ashlar::core {
namespace {

policy::Options Conf(const char* conf, policy::Compat compat = policy::Compat::kTorch210) {
  return *policy::ParseConf(conf, compat, policy::Keys::kAshlar);
}

TEST(LimitsTest, TheLowerOfTwoHolds) {
  const policy::Options options = Conf("");
  Limits limits(options, 10 * kGiB);
  EXPECT_EQ(limits.bytes(), std::nullopt);
  EXPECT_FALSE(limits.AreExceeded(9 * kGiB, 9 * kGiB));
  limits.SetBytes(4 * kGiB);
  EXPECT_EQ(limits.bytes(), 4 * kGiB);
  EXPECT_EQ(limits.SetFraction(0.25), absl::OkStatus());
  EXPECT_EQ(limits.bytes(), 10 * kGiB / 4);
  EXPECT_FALSE(limits.AreExceeded(2 * kGiB, 512 * kMiB));
  EXPECT_TRUE(limits.AreExceeded(2 * kGiB, 512 * kMiB + 1));
  limits.SetBytes(std::nullopt);
  EXPECT_EQ(limits.bytes(), 10 * kGiB / 4);
  EXPECT_EQ(limits.total_bytes(), 10 * kGiB);
}

TEST(LimitsTest, AFractionIsFromZeroToOne) {
  const policy::Options options = Conf("");
  Limits limits(options, kGiB);
  EXPECT_EQ(limits.SetFraction(-0.1).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(limits.SetFraction(1.5).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(limits.bytes(), std::nullopt) << "nothing has changed";
  EXPECT_EQ(limits.SetFraction(0), absl::OkStatus());
  EXPECT_EQ(limits.bytes(), std::uint64_t{0});
}

// The whole device is no limit to late PyTorch, and one to early.
TEST(LimitsTest, TheWholeDevice) {
  const policy::Options late = Conf("");
  Limits limits(late, kGiB);
  EXPECT_EQ(limits.SetFraction(1), absl::OkStatus());
  EXPECT_EQ(limits.bytes(), std::nullopt);
  const policy::Options early = Conf("", policy::Compat::kTorch26);
  Limits early_limits(early, kGiB);
  EXPECT_EQ(early_limits.SetFraction(1), absl::OkStatus());
  EXPECT_EQ(early_limits.bytes(), std::uint64_t{kGiB});
}

TEST(LimitsTest, RejectionAsksTheSettingsAlone) {
  const policy::Options without = Conf("");
  EXPECT_FALSE(Limits(without, kGiB).Reject(kGiB, kGiB));
  const policy::Options with = Conf("throw_on_cudamalloc_oom:True");
  const Limits limits(with, kGiB);
  EXPECT_FALSE(limits.Reject(kGiB / 2, kGiB / 2));
  EXPECT_TRUE(limits.Reject(kGiB / 2, kGiB / 2 + 1));
}

TEST(LimitsTest, GarbageIsWhatIsAboveTheThreshold) {
  const policy::Options options = Conf("garbage_collection_threshold:0.5");
  Limits limits(options, kGiB);
  EXPECT_FALSE(limits.CollectGarbage()) << "without a limit there is no threshold";
  limits.SetBytes(100 * kMiB);
  EXPECT_TRUE(limits.CollectGarbage());
  EXPECT_EQ(limits.GarbageBytes(50 * kMiB), 0u);
  EXPECT_EQ(limits.GarbageBytes(60 * kMiB), 10 * kMiB);
}

TEST(LimitsTest, TheSoftLimitOfTheSettingsIsTheLowerOfBoth) {
  for (const char* conf : {"soft_limit_mb:100,soft_limit_fraction:0.5", "soft_limit_mb:200,soft_limit_fraction:0.1"}) {
    const policy::Options options = Conf(conf);
    Limits limits(options, 1000 * kMiB);
    limits.soft().SetCallback([](const SoftLimitCrossing&) {});
    EXPECT_FALSE(limits.soft().IsCrossing(90 * kMiB, 10 * kMiB)) << conf;
    EXPECT_TRUE(limits.soft().IsCrossing(90 * kMiB, 11 * kMiB)) << conf;
  }
}

TEST(LimitsTest, TheSoftLimitIsToldOnceToWhoWantsToKnow) {
  const policy::Options options = Conf("soft_limit_mb:100");
  Limits limits(options, kGiB);
  EXPECT_FALSE(limits.soft().IsCrossing(90 * kMiB, 20 * kMiB)) << "nobody wants to know";
  limits.soft().SetCallback([](const SoftLimitCrossing&) {});
  EXPECT_TRUE(limits.soft().IsCrossing(90 * kMiB, 20 * kMiB));
  EXPECT_FALSE(limits.soft().IsCrossing(101 * kMiB, 20 * kMiB)) << "it was crossed before";
}

}  // namespace
}  // namespace ashlar::core
