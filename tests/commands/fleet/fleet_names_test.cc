#include "commands/shared/fleet_names.h"

#include <algorithm>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ashlar::answers {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::uint64_t> Ranks(const std::vector<std::string>& paths) { return NameRanks(paths).ranks; }

TEST(FleetNames, WordRankInTheName) {
  EXPECT_THAT(Ranks({"a/rank0_memory_snapshot.pickle", "a/rank37_memory_snapshot.pickle"}), ElementsAre(0, 37));
  EXPECT_THAT(Ranks({"step10-RANK_3.pkl", "step10-RANK_12.pkl"}), ElementsAre(3, 12));
  EXPECT_THAT(Ranks({"snap.global_rank=7.pickle.gz"}), ElementsAre(7));
  // Other numbers in the name differ as well.
  EXPECT_THAT(Ranks({"host12_4411_rank1.pickle", "host13_2210_rank0.pickle"}), ElementsAre(1, 0));
}

TEST(FleetNames, WordRankInAFolder) {
  EXPECT_THAT(Ranks({"run/rank_5/snapshot.pickle", "run/rank_6/snapshot.pickle"}), ElementsAre(5, 6));
}

TEST(FleetNames, TheOneNumberThatDiffers) {
  EXPECT_THAT(Ranks({"iter100/snapshot_37.pickle", "iter100/snapshot_4.pickle"}), ElementsAre(37, 4));
  EXPECT_THAT(Ranks({"gpt2_node_3.pickle", "gpt2_node_9.pickle"}), ElementsAre(3, 9));
  EXPECT_THAT(Ranks({"node3/snapshot.pickle", "node10/snapshot.pickle"}), ElementsAre(3, 10));
}

TEST(FleetNames, ElseTheOrderOfTheNames) {
  const RankNames two_differ = NameRanks({"host1_900.pickle", "host2_901.pickle"});
  EXPECT_THAT(two_differ.ranks, ElementsAre(0, 1));
  EXPECT_THAT(two_differ.assumed, HasSubstr("order of the names"));
  EXPECT_THAT(Ranks({"alpha.pickle", "beta.pickle"}), ElementsAre(0, 1));
  // One number twice tells nothing.
  EXPECT_THAT(Ranks({"x/snapshot_1.pickle", "y/snapshot_1.pickle"}), ElementsAre(0, 1));
  // No rank has so many digits.
  EXPECT_THAT(Ranks({"t1700000000000.pickle", "t1700000000001.pickle"}), ElementsAre(0, 1));
}

TEST(FleetNames, SaysWhatItAssumes) {
  EXPECT_THAT(NameRanks({"rank0.pickle", "rank2.pickle"}).assumed, HasSubstr("rank2.pickle is rank 2"));
  EXPECT_THAT(NameRanks({"a/rank2.pickle", "b/rank2.pickle"}).assumed, HasSubstr("; rank 2 has several files"));
  EXPECT_THAT(NameRanks({"rank0.pickle", "rank1.pickle", "rank10.pickle", "rank12.pickle"}).assumed,
              HasSubstr("; ranks 2-9, 11 are missing"));
  EXPECT_THAT(NameRanks({"rank1.pickle", "rank2.pickle"}).assumed, HasSubstr("; rank 0 is missing"));
  // Numbers without the word may begin anywhere, and those that lie far apart are none of a row.
  EXPECT_THAT(NameRanks({"s_3.pickle", "s_5.pickle"}).assumed, HasSubstr("; rank 4 is missing"));
  EXPECT_THAT(NameRanks({"s_3.pickle", "s_500.pickle"}).assumed, testing::Not(HasSubstr("missing")));
}

TEST(FleetNames, NumbersByTheirValue) {
  std::vector<std::string> names = {"r10", "r9", "r2b", "r2a", "r02a", "q", "r", "r100000000000000000000000"};
  std::sort(names.begin(), names.end(), NameComesBefore);
  EXPECT_THAT(names, ElementsAre("q", "r", "r02a", "r2a", "r2b", "r9", "r10", "r100000000000000000000000"));
}

// An order that is none would break the sort: every triple is tried.
TEST(FleetNames, IsAnOrder) {
  const std::vector<std::string> names = {"a01z9", "a1b3", "a1a", "a1",  "a", "",  "a1b",
                                          "a01c",  "b",    "a2",  "a10", "1", "01"};
  for (const std::string& a : names) {
    EXPECT_FALSE(NameComesBefore(a, a));
    for (const std::string& b : names) {
      EXPECT_EQ(NameComesBefore(a, b) || NameComesBefore(b, a), a != b) << a << " " << b;
      for (const std::string& c : names) {
        const bool is_chain = NameComesBefore(a, b) && NameComesBefore(b, c);
        EXPECT_TRUE(!is_chain || NameComesBefore(a, c)) << a << " " << b << " " << c;
      }
    }
  }
}

TEST(FleetNames, ListsInSpans) {
  EXPECT_EQ(RankList({}), "");
  EXPECT_EQ(RankList({5}), "5");
  EXPECT_EQ(RankList({2, 1, 0, 7, 7, 9, 10}), "0-2, 7, 9, 10");
  EXPECT_EQ(RankList({0, 2, 4, 6, 8}, 3), "0, 2, 4 and 2 more");
}

}  // namespace
}  // namespace ashlar::answers
