// `ashlar dry-run --ranks`: which ranks are run by what they tell of their groups, and what is said of the others.
#include <sys/syscall.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/commands/schema_check.h"
#include "tests/launcher/launched_test.h"

namespace ashlar {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr std::uint64_t kRankGiB = std::uint64_t{1} << 30;

class DryRunRanksTest : public LaunchedTest {
 protected:
  void SetUp() override {
    constexpr long kCreateRuleset = 444;  // asked for its version
    if (syscall(kCreateRuleset, nullptr, 0, 1) < 1)
      GTEST_SKIP() << "this Linux keeps no program from writing (Landlock)";
  }

  // What the Python part would tell of a rank.
  struct Told {
    int rank = 0;
    int world = 1;
    std::vector<std::vector<int>> groups, used, paired;
    std::vector<int> peers;
  };
  std::string Telling(const Told& told, std::uint64_t peak_bytes, std::uint64_t ooms = 0) const {
    const json groups = {{"rank", told.rank}, {"world", told.world},   {"groups", told.groups},
                         {"used", told.used}, {"paired", told.paired}, {"peers", told.peers}};
    return LeavingText("ranks-7.json", groups) + LeavingText("process-7.json", Books(peak_bytes, ooms));
  }
  // A program that does so by its rank.
  std::string RankProgram(const std::vector<std::pair<int, std::string>>& ranks) const {
    std::string lines = "case $RANK in\n";
    for (const auto& [rank, text] : ranks) absl::StrAppend(&lines, rank, ")\n", text, ";;\n");
    return Script("program", lines + "esac\n");
  }
  json RanksOf(const std::string& flags, const std::string& program) const {
    const Result result = Run("dry-run --capacity 16GiB " + flags + " --json -- " + program);
    const json report = json::parse(result.out, nullptr, false);
    EXPECT_TRUE(report.is_object()) << result.out << result.error;
    std::ifstream rules(ASHLAR_SOURCE_DIR "/docs/schemas/dry-run.schema.json");
    json rule = json::parse(rules);
    rule["$defs"]["dry_run"]["properties"]["explanation"] = {{"type", "null"},
                                                             {"description", "None of these has one."}};
    tests::SchemaCheck schema(rule);
    schema.Check(report);
    EXPECT_THAT(schema.errors(), IsEmpty());
    return report.value("ranks", json());
  }
  static std::vector<int> Numbered(int count) {
    std::vector<int> out;
    for (int rank = 0; rank < count; ++rank) out.push_back(rank);
    return out;
  }
};

TEST_F(DryRunRanksTest, AlongAGroupOfCollectivesTheFirstAndTheLastRankAreOneRoleWhereTheirPeaksAgree) {
  const std::vector<int> world = Numbered(16);
  const auto telling = [&](int rank) {
    return Telling({.rank = rank, .world = 16, .groups = {world}, .used = {world}, .paired = {}, .peers = {}},
                   3 * kRankGiB);
  };
  const std::string program = RankProgram({{0, telling(0)}, {15, telling(15)}});
  const Result text = Run("dry-run --capacity 16GiB --ranks 16 -- " + program);
  EXPECT_THAT(text.error, AllOf(HasSubstr("fits on 16 x a device of 16.00 GiB"), HasSubstr("rank 0 (first)"),
                                HasSubstr("rank 15 (last of the 16 ranks 0-15)"), HasSubstr("(compared)"),
                                HasSubstr("has the peak of rank 0"), HasSubstr("assumed: ranks 1-15 take")));
  const json ranks = RanksOf("--ranks 16", program);
  ASSERT_EQ(ranks["roles"].size(), 2U) << text.error;
  EXPECT_EQ(ranks["roles"][0]["stands_for"], json(world));
  EXPECT_THAT(ranks["roles"][1]["stands_for"], IsEmpty());
  EXPECT_EQ(ranks["decides"], 0);
}

TEST_F(DryRunRanksTest, ALastRankOfAnotherPeakStandsForItselfAlone) {
  const std::vector<int> world = Numbered(4);
  const auto telling = [&](int rank, std::uint64_t peak) {
    return Telling({.rank = rank, .world = 4, .groups = {world}, .used = {world}, .paired = {}, .peers = {}}, peak);
  };
  const json ranks = RanksOf("--ranks 4", RankProgram({{0, telling(0, 2 * kRankGiB)}, {3, telling(3, 3 * kRankGiB)}}));
  ASSERT_EQ(ranks["roles"].size(), 2U);
  EXPECT_EQ(ranks["roles"][0]["stands_for"], json({0, 1, 2}));
  EXPECT_EQ(ranks["roles"][1]["stands_for"], json({3}));
  EXPECT_EQ(ranks["decides"], 3) << "it takes most";
  EXPECT_THAT(ranks["compared"][0].get<std::string>(),
              AllOf(HasSubstr("has another peak than rank 0"), HasSubstr("(1.00 GiB more)")));
}

TEST_F(DryRunRanksTest, RanksOfOneStepAreWrittenInShort) {
  const std::vector<int> group = {0, 4, 8, 12};
  const auto telling = [&](int rank) {
    return Telling({.rank = rank, .world = 16, .groups = {group}, .used = {group}, .paired = {}, .peers = {}},
                   kRankGiB);
  };
  const json ranks = RanksOf("--ranks 16", RankProgram({{0, telling(0)}, {12, telling(12)}}));
  ASSERT_EQ(ranks["roles"].size(), 2U);
  EXPECT_EQ(ranks["roles"][1]["what"], "last of the 4 ranks 0, 4, ..., 12");
}

// Two ranks of tensor parallel, four stages: 0 and 1 are the first stage, 2 and 3 the second.
class DryRunPipelineTest : public DryRunRanksTest {
 protected:
  std::string Stages(std::uint64_t failed_of_last) const {
    const std::vector<std::vector<int>> groups = {Numbered(8), {0, 1},       {2, 3},      {4, 5},
                                                  {6, 7},      {0, 2, 4, 6}, {1, 3, 5, 7}};
    std::vector<std::pair<int, std::string>> ranks;
    for (int stage = 0; stage < 4; ++stage) {
      const int rank = 2 * stage;
      Told told{.rank = rank,
                .world = 8,
                .groups = groups,
                .used = {{rank, rank + 1}, {0, 2, 4, 6}},
                .paired = {{0, 2, 4, 6}},
                .peers = {}};
      if (stage > 0) told.peers.push_back(rank - 2);
      if (stage < 3) told.peers.push_back(rank + 2);
      const std::uint64_t failed = stage == 3 ? failed_of_last : 0;
      ranks.emplace_back(rank, Telling(told, (stage + 1) * kRankGiB, failed) + (failed > 0 ? "exit 1\n" : ""));
    }
    ranks.emplace_back(
        1, Telling({.rank = 1, .world = 8, .groups = groups, .used = {}, .paired = {}, .peers = {3}}, kRankGiB));
    return RankProgram(ranks);
  }
};

TEST_F(DryRunPipelineTest, EachStageIsARoleAndStandsForItsRanks) {
  const json ranks = RanksOf("--ranks 8", Stages(0));
  std::vector<std::pair<int, json>> stood;
  for (const json& role : ranks["roles"]) stood.emplace_back(role["rank"], role["stands_for"]);
  EXPECT_THAT(stood, testing::UnorderedElementsAre(testing::Pair(0, json({0, 1})), testing::Pair(1, json::array()),
                                                   testing::Pair(2, json({2, 3})), testing::Pair(4, json({4, 5})),
                                                   testing::Pair(6, json({6, 7}))));
  EXPECT_EQ(ranks["decides"], 6);
}

TEST_F(DryRunPipelineTest, TheVerdictIsOfTheStageThatFindsNoMemory) {
  const Result result = Run("dry-run --capacity 16GiB --ranks 8 -- " + Stages(2));
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.error, AllOf(HasSubstr("does not fit on 8 x a device of 16.00 GiB: rank 6 (stage 4 of 4): 2"),
                                  HasSubstr("ended with exit code 1")));
}

TEST_F(DryRunRanksTest, RanksAreChosenByHand) {
  const std::vector<int> world = Numbered(10);
  const auto telling = [&](int rank) {
    return Telling({.rank = rank, .world = 10, .groups = {world}, .used = {world}, .paired = {}, .peers = {}},
                   kRankGiB);
  };
  const std::string program = RankProgram(
      {{0, telling(0)}, {9, telling(9) + "echo \"$RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $GROUP_RANK\"\n"}});
  const Result result = Run("dry-run --capacity 16GiB --ranks 10 --roles 9,0 -- " + program);
  EXPECT_EQ(result.out, "9/10 4/5 1\n")
      << "the first of those given is the one that is seen; 5 on a machine divides 10";
  EXPECT_THAT(result.error, HasSubstr("nothing is said of the 8 ranks that were not run"));
}

TEST_F(DryRunRanksTest, AProgramWithoutRanksIsRunOnceAndSaidSo) {
  const std::string plain = Script("plain", LeavingText("process-7.json", Books(kRankGiB)));
  const Result none = Run("dry-run --capacity 16GiB --ranks 8 -- " + plain);
  EXPECT_EQ(none.code, 0);
  EXPECT_THAT(none.error, HasSubstr("one was run: the program made no process group"));
  const std::string own = Script(
      "own", Telling({.rank = 0, .world = 2, .groups = {{0, 1}}, .used = {}, .paired = {}, .peers = {}}, kRankGiB));
  EXPECT_THAT(Run("dry-run --capacity 16GiB --ranks 8 -- " + own).error,
              HasSubstr("made a world of 2 ranks, and not the 8"));
}

TEST_F(DryRunRanksTest, ARoleThatEndsEarlyLeavesTheVerdictOpen) {
  const std::vector<int> world = Numbered(2);
  const Told told{.rank = 0, .world = 2, .groups = {world}, .used = {world}, .paired = {}, .peers = {}};
  const std::string program = RankProgram({{0, Telling(told, kRankGiB)}, {1, "echo 'no such shard' >&2\nexit 3\n"}});
  const Result result = Run("dry-run --capacity 16GiB --ranks 2 -- " + program);
  EXPECT_EQ(result.code, 3);
  EXPECT_THAT(result.error, AllOf(HasSubstr("not known"), HasSubstr("as rank 1"), HasSubstr("no such shard"),
                                  Not(HasSubstr("fits on"))));
}

TEST_F(DryRunRanksTest, BadFlagsGetALine) {
  const std::string program = Script("program", "exit 0\n");
  const auto said = [&](const std::string& flags) {
    const Result result = Run("dry-run " + flags + " -- " + program);
    EXPECT_EQ(result.code, 2) << flags;
    return result.error;
  };
  EXPECT_THAT(said("--ranks 0"), HasSubstr("--ranks: 0 is not between 1 and 65536"));
  EXPECT_THAT(said("--ranks 10 --ranks-per-node 4"), HasSubstr("10 ranks are no multiple of 4"));
  EXPECT_THAT(said("--ranks 10 --roles 0,10"), HasSubstr("'10' is neither all nor a rank from 0 to 9"));
  EXPECT_THAT(said("--ranks 10 --roles ,"), HasSubstr("',' names no rank"));
  EXPECT_THAT(said("--roles 0"), HasSubstr("--roles: goes with --ranks"));
  EXPECT_THAT(said("--ranks 4 --devices 2"), HasSubstr("--devices excludes --ranks"));
}

}  // namespace
}  // namespace ashlar
