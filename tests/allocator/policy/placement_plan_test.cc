// Plans as text: what is written is read again, and whatever is read either can be followed or is refused in one line.
#include "allocator/policy/placement_plan.h"

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "allocator/base/rng.h"
#include "allocator/base/units.h"
#include "allocator/policy/conf_split.h"
#include "allocator/policy/options.h"
#include "allocator/policy/placement_plan.h"
#include "gtest/gtest.h"

namespace ashlar::policy {
namespace {

// Two requests, then steps of two kinds that begin alike; and lanes of other streams and pools.
PlacementPlan SomePlan() {
  LanePlan lane;
  lane.segment_bytes = 100 * kMiB;
  lane.peak_bytes = 99 * kMiB;
  lane.requests = {{0, {}, {2}},
                   {0, {}, {4}},
                   {4 * kMiB, {0}, {3}},
                   {8 * kMiB, {4 * kMiB, 60 * kMiB}, {}},
                   {16 * kMiB, {12 * kMiB}, {5, 6}},
                   {32 * kMiB, {28 * kMiB}, {}},
                   {2 * kMiB, {}, {7}},
                   {3 * kMiB, {97 * kMiB}, {}}};
  const LanePlan of_stream{4 * kMiB, 4 * kMiB, {{0, {}, {2}}, {}, {4 * kMiB, {0}, {}}}, LaneUse::kOtherStream};
  const LanePlan of_pool{2 * kMiB, kMiB, {{0, {}, {2}}, {}, {kMiB, {512}, {}}}, LaneUse::kPrivatePool, true};
  return {"a recording, 12 events", {lane, of_stream, of_pool}};
}

void ExpectEqual(const PlacementPlan& a, const PlacementPlan& b) {
  EXPECT_EQ(a.made_of, b.made_of);
  ASSERT_EQ(a.lanes.size(), b.lanes.size());
  for (std::size_t lane = 0; lane < a.lanes.size(); ++lane) {
    EXPECT_EQ(a.lanes[lane].segment_bytes, b.lanes[lane].segment_bytes);
    EXPECT_EQ(a.lanes[lane].peak_bytes, b.lanes[lane].peak_bytes);
    EXPECT_EQ(a.lanes[lane].use, b.lanes[lane].use);
    EXPECT_EQ(a.lanes[lane].is_small, b.lanes[lane].is_small);
    ASSERT_EQ(a.lanes[lane].requests.size(), b.lanes[lane].requests.size());
    for (std::size_t i = 0; i < a.lanes[lane].requests.size(); ++i) {
      EXPECT_EQ(a.lanes[lane].requests[i].size_bytes, b.lanes[lane].requests[i].size_bytes) << i;
      EXPECT_EQ(a.lanes[lane].requests[i].offsets, b.lanes[lane].requests[i].offsets) << i;
      EXPECT_EQ(a.lanes[lane].requests[i].next, b.lanes[lane].requests[i].next) << i;
    }
  }
}

TEST(PlacementPlanTest, WhatIsWrittenIsRead) {
  const std::string text = PlanText(SomePlan());
  const absl::StatusOr<PlacementPlan> read = ParsePlan(text);
  ASSERT_TRUE(read.ok()) << read.status();
  ExpectEqual(*read, SomePlan());
  EXPECT_EQ(PlanText(*read), text);
}

TEST(PlacementPlanTest, APlanThatIsCutAnywhereIsRefused) {
  const std::string text = PlanText(SomePlan());
  for (std::size_t bytes = 0; bytes < text.size(); ++bytes) {
    const absl::StatusOr<PlacementPlan> read = ParsePlan(text.substr(0, bytes));
    ASSERT_TRUE(absl::IsInvalidArgument(read.status())) << bytes;
    EXPECT_EQ(std::string(read.status().message()).find('\n'), std::string::npos) << "one line";
  }
  EXPECT_FALSE(ParsePlan(text + "x").ok());
}

TEST(PlacementPlanTest, AChangedByteIsRefused) {
  const std::string text = PlanText(SomePlan());
  for (std::size_t at = 0; at < text.size(); ++at) {
    for (const char byte : {'\0', ' ', '\n', '0', '9', 'a', '\xff'}) {
      std::string changed = text;
      if (changed[at] == byte) continue;
      changed[at] = byte;
      EXPECT_FALSE(ParsePlan(changed).ok()) << "byte " << at;
    }
  }
}

// Whatever a line says, with the right checksum: what is accepted can be followed.
TEST(PlacementPlanTest, WhatIsReadCanBeFollowed) {
  const std::vector<std::string> words = {"lane",
                                          "at",
                                          "end",
                                          "0",
                                          "1",
                                          "2",
                                          "7",
                                          "512",
                                          "2097152",
                                          "4194304",
                                          "-1",
                                          "18446744073709551616",
                                          "281474976710656",
                                          "",
                                          "x",
                                          "pool",
                                          "small"};
  Rng rng(7);
  int accepted = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string body = "ashlar-plan 2\nof x\nlane 8388608 0 stream large\n";
    for (std::uint64_t line = rng.Below(6); line > 0; --line) {
      for (std::uint64_t word = rng.Between(1, 4); word > 0; --word) {
        body += words[rng.Below(words.size())];
        body += word > 1 ? " " : "\n";
      }
    }
    const absl::StatusOr<PlacementPlan> wrong = ParsePlan(body + "end 0\n");
    ASSERT_FALSE(wrong.ok());
    // The writer's checksum of these very lines.
    const absl::StatusOr<PlacementPlan> plan = ParsePlan(body + "end " + PlanChecksum(body) + "\n");
    if (!plan.ok()) continue;
    ++accepted;
    for (const LanePlan& lane : plan->lanes) {
      PlanCursor cursor(lane);
      for (int i = 0; i < 20; ++i) {
        const PlannedRequest* planned = cursor.Next(kMinBlockBytes * rng.Between(2049, 9000));
        if (planned == nullptr) continue;
        for (const std::uint64_t offset : planned->offsets) EXPECT_LE(offset + planned->size_bytes, lane.segment_bytes);
      }
    }
  }
  EXPECT_GT(accepted, 100);
}

TEST(PlacementPlanTest, ALaneHasRequestsOfOneSizeClass) {
  const auto read = [](const std::string& lane) {
    const std::string body = "ashlar-plan 2\nof x\nlane 8388608 0 " + lane + "\n";
    return ParsePlan(body + "end " + PlanChecksum(body) + "\n");
  };
  EXPECT_TRUE(read("default large\n1049088 0").ok());
  EXPECT_TRUE(read("pool small\n1048576 0\n512 7340032").ok());
  EXPECT_FALSE(read("default large\n1048576 0").ok());
  EXPECT_FALSE(read("stream small\n1049088 0").ok());
  EXPECT_FALSE(read("default small\n0 0").ok());
  for (const char* lane : {"default", "default middle", "other large", "large default", "default large 1"}) {
    EXPECT_FALSE(read(lane).ok()) << lane;
  }
}

TEST(PlacementPlanTest, FilesAreNamedWithTheMend) {
  const absl::StatusOr<PlacementPlan> missing = ReadPlan("/no/such/file.plan");
  EXPECT_EQ(missing.status().message(), "'/no/such/file.plan' cannot be read; make it with: ashlar plan TRACE -o FILE");
  const std::string path = testing::TempDir() + "/foreign.plan";
  std::ofstream(path) << "a 1 2 3\n";
  EXPECT_EQ(ReadPlan(path).status().message(), "'" + path +
                                                   "' line 1: no plan: its first line is not \"ashlar-plan 2\"" +
                                                   "; make it with: ashlar plan TRACE -o FILE");
  std::ofstream(path) << "ashlar-plan 9\n";
  EXPECT_EQ(ReadPlan(path).status().message(),
            "'" + path + "' line 1: a plan of another version; make it with: ashlar plan TRACE -o FILE");
  EXPECT_FALSE(ReadPlan(testing::TempDir()).ok()) << "a folder";
  std::remove(path.c_str());
}

TEST(PlacementPlanTest, TheSettingReadsTheFileAtTheStart) {
  const std::string path = testing::TempDir() + "/setting.plan";
  std::ofstream(path) << PlanText(SomePlan());
  const absl::StatusOr<Options> options =
      ParseConf("max_split_size_mb:64,plan:" + path, Compat::kTorch210, Keys::kAshlar);
  ASSERT_TRUE(options.ok()) << options.status();
  ASSERT_NE(options->plan, nullptr);
  ExpectEqual(*options->plan, SomePlan());
  EXPECT_EQ(WithoutKey(options->conf, "plan"), "max_split_size_mb:64") << "a recording is replayed without the file";
  EXPECT_FALSE(ParseConf("plan:" + path + ",expandable_segments:True", Compat::kTorch210, Keys::kAshlar).ok());
  EXPECT_FALSE(ParseConf("plan:" + path, Compat::kTorch210, Keys::kTorch).ok());
  std::remove(path.c_str());
  EXPECT_FALSE(ParseConf("plan:" + path, Compat::kTorch210, Keys::kAshlar).ok());
}

}  // namespace
}  // namespace ashlar::policy
