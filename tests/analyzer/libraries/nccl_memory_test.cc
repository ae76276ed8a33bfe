// The rules against figures that others posted of real GPUs, and against our own of an H200.
#include "analyzer/libraries/nccl_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "allocator/base/units.h"

namespace ashlar::libraries {
namespace {

using testing::HasSubstr;

constexpr gpus::Capability kAmpere{8, 0}, kHopper{9, 0}, kAda{8, 9};
constexpr std::uint64_t kGB = 1'000'000'000;

bool Holds(const BytesBetween& interval, std::uint64_t bytes) {
  return interval.least_bytes <= bytes && bytes <= interval.most_bytes;
}

BytesBetween Of(std::vector<CommunicatorUse> communicators, gpus::Capability capability = kHopper,
                std::map<std::string, std::string> settings = {}) {
  return NcclBytes({.version = 22809, .settings = std::move(settings), .communicators = std::move(communicators)},
                   capability);
}

// github.com/NVIDIA/nccl issue 1685: 8 H100, 32 channels for each pair: 3.28 GB more with the first all-to-all.
TEST(NcclMemoryTest, AnAllToAllOfEightRanksIsAsItWasSeen) {
  const std::map<std::string, std::string> channels = {{"NCCL_NCHANNELS_PER_PEER", "32"}};
  const BytesBetween before = Of({{.ranks = 8, .has_collectives = true}}, kHopper, channels);
  const BytesBetween after = Of({{.ranks = 8, .has_collectives = true, .peers = 7}}, kHopper, channels);
  const BytesBetween more{after.least_bytes - before.least_bytes, after.most_bytes - before.most_bytes};
  EXPECT_TRUE(Holds(more, 4'340'000'000 - 1'060'000'000)) << FormatBytes(more.most_bytes);
  EXPECT_LT(more.most_bytes - more.least_bytes, kGB);
  EXPECT_TRUE(Holds(Of({{.ranks = 8, .has_collectives = true}}), 1'060'000'000 - 500'000'000)) << "less a context";
}

// github.com/NVIDIA/nccl issue 964: 4 A100 by NVLink, an all-reduce in each group: 544 MB of two ranks, 688 of more.
TEST(NcclMemoryTest, GroupsOfA100AreAsTheyWereSeen) {
  const std::map<std::string, std::string> channels = {{"NCCL_MIN_NCHANNELS", "24"}, {"NCCL_MAX_NCHANNELS", "24"}};
  const BytesBetween pair = Of({{.ranks = 2, .has_collectives = true}}, kAmpere, channels);
  const BytesBetween four = Of({{.ranks = 4, .has_collectives = true}}, kAmpere, channels);
  EXPECT_EQ(pair.least_bytes, 24 * 12 * kMiB);
  EXPECT_TRUE(Holds(pair, 544 * kMiB));
  EXPECT_TRUE(Holds(four, 688 * kMiB));
}

// github.com/verl-project/verl pull request 6408: Megatron on 8 H100, TP 2, PP 2, DP 2, frees 7 GB a rank, and 9.5 GB
// with experts. The groups that Megatron makes of them: all ranks, each dimension, and pairs and fours across them.
TEST(NcclMemoryTest, MegatronsGroupsAreAsTheyWereSeen) {
  const CommunicatorUse all{.ranks = 8, .has_collectives = true}, two{.ranks = 2, .has_collectives = true};
  const CommunicatorUse four{.ranks = 4, .has_collectives = true}, pipeline{.ranks = 2, .peers = 1};
  const CommunicatorUse experts{.ranks = 2, .has_collectives = true, .peers = 1};
  const BytesBetween dense = Of({all, two, two, pipeline, two, four, four});
  EXPECT_TRUE(Holds(dense, 7 * kGB)) << FormatBytes(dense.most_bytes);
  const BytesBetween moe = Of({all, two, two, pipeline, two, four, four, experts, two, four});
  EXPECT_TRUE(Holds(moe, 9'500'000'000)) << FormatBytes(moe.most_bytes);
  EXPECT_FALSE(Holds(Of({two}), 7 * kGB)) << "one pair does not explain it";
}

// What stays of suspended communicators. github.com/NVIDIA/nccl pull request 2060: 3.47 GB of a Megatron-LM workload,
// and 1.59 GB once channels gave theirs back as well; its ranks, cards and groups are not told, so Megatron's ten
// groups on H100 are taken. github.com/sgl-project/sglang pull request 30908: 8 GB200 (TP 8) gave 576 MiB each back.
TEST(NcclMemoryTest, WhatASuspendedCommunicatorKeepsIsAsItWasSeen) {
  const auto all = [](bool is_suspended) {
    return CommunicatorUse{.ranks = 8, .has_collectives = true, .is_suspended = is_suspended};
  };
  const CommunicatorUse two{.ranks = 2, .has_collectives = true, .is_suspended = true};
  const CommunicatorUse four{.ranks = 4, .has_collectives = true, .is_suspended = true};
  const CommunicatorUse pipeline{.ranks = 2, .peers = 1, .is_suspended = true};
  const BytesBetween megatron = Of({all(true), two, two, pipeline, two, four, four, two, two, four});
  EXPECT_TRUE(Holds(megatron, 3'470'000'000)) << FormatBytes(megatron.most_bytes);
  EXPECT_TRUE(Holds(megatron, 1'590'000'000));
  EXPECT_FALSE(Holds(Of({all(true), two}), 3'470'000'000)) << "two groups do not explain it";

  constexpr gpus::Capability kBlackwell{10, 0};
  const BytesBetween before = Of({all(false)}, kBlackwell), after = Of({all(true)}, kBlackwell);
  EXPECT_TRUE(Holds({before.least_bytes - after.least_bytes, before.most_bytes - after.most_bytes}, 576 * kMiB));
  EXPECT_EQ(Of({{.ranks = 2, .peers = 1, .is_suspended = true}}).least_bytes, 0U);
}

// docs/measurements/h200.md.
TEST(NcclMemoryTest, OneRankTakesWhatItWasMeasuredToTake) {
  EXPECT_EQ(Of({{.ranks = 1, .has_collectives = true}}).most_bytes, 558 * kMiB);
  EXPECT_EQ(Of({{.ranks = 1}, {.ranks = 1}}).most_bytes, (558 + 388) * kMiB);
  EXPECT_EQ(Of({{.ranks = 1, .has_collectives = true}}).least_bytes, 0U);
}

// Logs of NVLS with 8 ranks, posted: 1,610,612,736 bytes of old releases, 268,435,456 of younger ones.
TEST(NcclMemoryTest, MulticastIsFromHopperOnAndCanBeTurnedOff) {
  const std::vector<CommunicatorUse> eight = {{.ranks = 8, .has_collectives = true}};
  const std::uint64_t without = Of(eight, kHopper, {{"NCCL_NVLS_ENABLE", "0"}}).most_bytes;
  EXPECT_EQ(Of(eight).most_bytes - without, 512 * kMiB);
  EXPECT_EQ(Of(eight, kAmpere).most_bytes, without);
  EXPECT_EQ(NcclBytes({.version = 21805, .communicators = eight}, kHopper).most_bytes - without, 1'610'612'736U);
  EXPECT_EQ(Of({{.ranks = 2, .has_collectives = true}}).most_bytes,
            Of({{.ranks = 2, .has_collectives = true}}, kAmpere).most_bytes);
}

TEST(NcclMemoryTest, SettingsCountAndWrongOnesDoNot) {
  const std::vector<CommunicatorUse> two = {{.ranks = 2, .has_collectives = true}};
  const std::uint64_t usual = Of(two).most_bytes;
  EXPECT_EQ(Of(two, kHopper, {{"NCCL_BUFFSIZE", "8388608"}}).most_bytes - usual, 32 * 4 * kMiB);
  EXPECT_LT(Of(two, kHopper, {{"NCCL_MAX_NCHANNELS", "4"}}).most_bytes, usual);
  EXPECT_EQ(Of(two, kHopper, {{"NCCL_BUFFSIZE", "many"}}).most_bytes, usual);
}

TEST(NcclMemoryTest, WithoutLinksNothingIsSure) {
  EXPECT_EQ(Of({{.ranks = 2, .has_collectives = true}}, kAda).least_bytes, 0U);
  EXPECT_EQ(Of({{.ranks = 2, .has_collectives = true}}, kHopper, {{"NCCL_P2P_DISABLE", "1"}}).least_bytes, 0U);
  EXPECT_EQ(Of({}).most_bytes, 0U);
}

TEST(NcclMemoryTest, TheSourceNamesWhatItIsWorkedOutOf) {
  EXPECT_THAT(
      NcclSource(
          {.communicators = {{.ranks = 8, .has_collectives = true}, {.ranks = 2, .peers = 1, .is_suspended = true}}}),
      HasSubstr("2 communicators (8 ranks, collectives; 2 ranks, 1 peer, suspended), 2 to 32 channels, 12.00 MiB a"));
}

}  // namespace
}  // namespace ashlar::libraries
