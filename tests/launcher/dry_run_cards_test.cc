// Which card is enough: the program is run again as other cards, and harms nothing.
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/launcher/launched_test.h"

namespace ashlar {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;
using testing::UnorderedElementsAre;

class DryRunCardsTest : public LaunchedTest {
 protected:
  void SetUp() override {
    constexpr long kCreateRuleset = 444;  // asked for its version
    if (syscall(kCreateRuleset, nullptr, 0, 1) < 1)
      GTEST_SKIP() << "this Linux keeps no program from writing (Landlock)";
  }

  static constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

  // A native program of so many bytes, contexts included; where its kernels are those of a 7.x card, of more.
  std::string Program(std::uint64_t peak_bytes, std::uint64_t peak_of_7, const std::string& lines = "") const {
    const std::string log = Write("log", "ashlar-native-log 1\np 7 1\na 1 0 700000000 5242880 0 0 cudaMalloc\n");
    return Script("program", absl::StrCat("if grep -q compute_major=7 $ASHLAR_HOLLOW_RUN/machine; then\n",
                                          LeavingText("process-7.json", Books(peak_of_7)), "else\n",
                                          LeavingText("process-7.json", Books(peak_bytes)), "fi\n",
                                          Leaving("native-7.log", log), lines, "\n"));
  }
  json CardsOf(const std::string& flags, const std::string& program) const {
    const Result result = Run("dry-run " + flags + " --json -- " + program);
    EXPECT_EQ(result.code, 0) << result.error;
    return json::parse(result.out, nullptr, false)["cards"];
  }
  static std::vector<std::string> Capabilities(const json& cards) {
    std::vector<std::string> out;
    for (const json& run : cards["runs"]) out.push_back(run["capability"].get<std::string>());
    return out;
  }
  static json RowOf(const json& cards, const std::string& card) {
    for (const json& row : cards["rows"]) {
      if (row["card"] == card) return row;
    }
    return nullptr;
  }
  // In a rerun alone.
  static std::string Again(const std::string& lines) {
    return absl::StrCat("if [ -n \"$ASHLAR_APART\" ]; then\n", lines, "\nfi");
  }
  static std::set<std::string> WhysOf(const json& cards) {
    std::set<std::string> out;
    for (const json& run : cards["runs"]) {
      out.insert(run["why_not"].is_null() ? "" : run["why_not"].get<std::string>());
    }
    return out;
  }
};

TEST_F(DryRunCardsTest, ARowHasTheVerdictOfARunAsItsOwnCapability) {
  const std::string program = Program(10 * kGiB, 20 * kGiB);
  const json cards = CardsOf("", program);
  EXPECT_EQ(RowOf(cards, "A100-40GB")["default"]["fits"], true);
  EXPECT_EQ(RowOf(cards, "T4")["default"]["fits"], false) << "an A100 would fit into as much";
  EXPECT_EQ(RowOf(cards, "T4")["ran_as"], "T4");
  EXPECT_EQ(RowOf(cards, "V100-16GB")["default"]["fits"], false);
  EXPECT_EQ(RowOf(cards, "V100-32GB")["default"]["fits"], true);
  EXPECT_EQ(RowOf(cards, "V100-32GB")["peak_allocated_bytes"], 20 * kGiB - (std::uint64_t{409} << 20));
  EXPECT_EQ(RowOf(cards, "P100-16GB")["default"]["fits"], true);
  EXPECT_TRUE(RowOf(cards, "B200")["default"]["fits"].is_null());
  EXPECT_EQ(WhysOf(cards), std::set<std::string>{""});
  EXPECT_TRUE(cards["why_no_runs"].is_null());
  const std::string text = Run("dry-run -- " + program).error;
  EXPECT_THAT(text, AllOf(HasSubstr("run again as P100-16GB (6.0), V100-16GB (7.0), T4 (7.5)"),
                          HasSubstr("the least card that is enough: RTX5070"), Not(HasSubstr("not run"))));
}

// Below 8.0 all; else cards of whose memory the first run took 40 to 105 %.
TEST_F(DryRunCardsTest, NearIsWhatIsOlderAndWhatHasAboutAsMuchMemory) {
  for (const std::uint64_t peak_bytes : {kGiB, 70 * kGiB, 100 * kGiB}) {
    const json cards = CardsOf("", Program(peak_bytes, peak_bytes));
    std::set<std::string> expected;
    for (const json& row : cards["rows"]) {
      const std::string capability = row["capability"].get<std::string>();
      const double share = static_cast<double>(peak_bytes) / row["total_bytes"].get<double>();
      if (capability != "8.0" && ((capability[1] == '.' && capability < "8.0") || (share >= 0.40 && share <= 1.05))) {
        expected.insert(capability);
      }
    }
    const std::vector<std::string> ran = Capabilities(cards);
    EXPECT_EQ(std::set<std::string>(ran.begin(), ran.end()), expected) << peak_bytes;
    EXPECT_EQ(expected.size(), ran.size()) << "each once";
  }
}

TEST_F(DryRunCardsTest, TheFlagChooses) {
  const std::string program = Program(kGiB, kGiB);
  EXPECT_THAT(Capabilities(CardsOf("--cards 'rtx 4090',L4,V100-32GB,A100-40GB", program)),
              UnorderedElementsAre("7.0", "8.9"));
  EXPECT_EQ(Capabilities(CardsOf("--cards all", program)).size(), 10U);
  const json once = CardsOf("--once", program);
  EXPECT_THAT(once["runs"], IsEmpty());
  EXPECT_EQ(once["why_no_runs"], "--once was given");
  EXPECT_FALSE(RowOf(once, "T4")["has_verdict"]);
  EXPECT_TRUE(RowOf(once, "A100-40GB")["has_verdict"]);
  ExpectError(Run("dry-run --cards T5 -- true"), 2, {"--cards: 'T5'", "T4"});
  ExpectError(Run("dry-run --cards A100 -- true"), 2, {"--cards: 'A100'", "several cards"});
  ExpectError(Run("dry-run --cards near --once -- true"), 2, {"--once", "--cards"});
  for (const char* machine : {"--device T4", "--capacity 16GiB"}) {
    ExpectError(Run(absl::StrCat("dry-run ", machine, " --cards near -- true")), 2, {"--cards: ", "--device"});
  }
}

TEST_F(DryRunCardsTest, WhatTheFirstRunWroteStays) {
  const std::string out = folder_ + "results";
  std::filesystem::create_directories(out);
  const std::string lines = absl::StrCat(
      "cd ", out, "\necho ${ASHLAR_APART:-first} > log.txt\necho more >> old.txt\nmkdir -p made\necho > made/file\n",
      Again("rm log.txt\nmv old.txt new.txt\nln -s a link\nrmdir made"), "\nexit 0");
  const json cards = CardsOf("", Program(kGiB, kGiB, lines));
  EXPECT_EQ(WhysOf(cards), std::set<std::string>{""}) << "the shell goes on where a write is refused";
  EXPECT_EQ(FileBytes(out + "/log.txt"), "first\n");
  EXPECT_EQ(FileBytes(out + "/old.txt"), "more\n");
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(out)) names.push_back(entry.path().filename().string());
  EXPECT_THAT(names, UnorderedElementsAre("log.txt", "old.txt", "made"));
}

// The answer is the first run's, and the row says that there was no other.
TEST_F(DryRunCardsTest, ARunThatFailsLeavesTheAnswerAsItIs) {
  const struct {
    std::string lines, why;
  } cases[] = {{"echo; echo ' no such module '; echo; exit 3", "it ended with exit code 3: no such module"},
               {"echo; kill -9 $$", "it ended with exit code 137"},
               {": > $0", "it ended with exit code"},
               {LeavingText("process-7.json", Books(kGiB, 2)), "a request found no memory"}};
  const std::string plain = Program(kGiB, kGiB, "echo from the program");
  json first = CardsOf("--once", plain);
  for (const auto& of : cases) {
    const std::string exits = of.lines == ": > $0" ? "set -e\n" + of.lines : of.lines;
    const std::string program = Program(kGiB, kGiB, Again(exits) + "\necho from the program");
    json cards = CardsOf("", program);
    for (const std::string& why : WhysOf(cards)) EXPECT_THAT(why, StartsWith(of.why));
    EXPECT_EQ(cards["rows"], first["rows"]);
    const Result text = Run("dry-run -- " + program);
    EXPECT_EQ(text.out, "from the program\n") << "the others print into a file";
    EXPECT_THAT(text.error, HasSubstr(absl::StrCat("not run as T4 (7.5): ", of.why)));
  }
}

TEST_F(DryRunCardsTest, AProgramThatDoesLessTheSecondTimeIsNoVerdict) {
  json less = Books(kGiB);
  less["launches"] = 1;
  const json cards = CardsOf("", Program(kGiB, kGiB, Again(LeavingText("process-7.json", less))));
  for (const std::string& why : WhysOf(cards))
    EXPECT_THAT(why, StartsWith("it did less than the first time, 1 kernels of 3"));
}

// What it gets: nothing is shared with those beside it, and nothing is sent.
TEST_F(DryRunCardsTest, EachRunHasPlacesOfItsOwn) {
  const std::string tell = Again(
      "read line; echo \"[$line] $WANDB_MODE $HF_HUB_OFFLINE $ASHLAR_HOLLOW_CALLS $MASTER_PORT $TMPDIR "
      "$TRITON_CACHE_DIR "
      "$ASHLAR_HOLLOW_RUN\"\ntest -d $TMPDIR && test -w $TMPDIR && test ! -t 0 && exit 5");
  const Result result = Run("dry-run --json --calls " + folder_ + "calls -- " + Program(kGiB, kGiB, tell),
                            "< " + Write("input", "words\n"));
  const json cards = json::parse(result.out, nullptr, false)["cards"];
  std::set<std::string> ports, folders;
  for (const std::string& why : WhysOf(cards)) {
    ASSERT_THAT(why, StartsWith("it ended with exit code 5: [] offline 1 "));
    const std::vector<std::string> words =
        absl::StrSplit(why.substr(why.find("offline 1") + 10), ' ', absl::SkipEmpty());
    ASSERT_EQ(words.size(), 4U) << why;
    ports.insert(words[0]);
    folders.insert(words[3]);
    EXPECT_THAT(words[1], StartsWith(words[3] + "/"));
    EXPECT_THAT(words[2], StartsWith(words[3] + "/"));
    EXPECT_FALSE(std::filesystem::exists(words[3]));
  }
  EXPECT_EQ(folders.size(), cards["runs"].size());
  EXPECT_GT(cards["runs"].size(), 2U);
  EXPECT_GT(ports.size(), 1U);
}

// A signal to the command ends what runs again, and the first run's answer is printed.
TEST_F(DryRunCardsTest, ASignalEndsTheOthersAlone) {
  const std::string program = Program(kGiB, kGiB, Again("kill -TERM $PPID\nsleep 100"));
  json cards = CardsOf("", program);
  for (const std::string& why : WhysOf(cards)) EXPECT_EQ(why, "it was stopped, as this command was asked to end");
  EXPECT_GT(cards["runs"].size(), 2U);
  EXPECT_EQ(cards["rows"], CardsOf("--once", program)["rows"]);
}

std::set<pid_t> ProcessesWith(const std::string& mark) {
  std::set<pid_t> out;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    std::ifstream file(entry.path() / "environ", std::ios::binary);
    const std::string text = {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    if (absl::StrContains(text, mark)) out.insert(std::stoi(entry.path().filename().string()));
  }
  return out;
}

TEST_F(DryRunCardsTest, NothingThatARunStartedGoesOn) {
  const std::string mark = "ASHLAR_TEST_STRAY=" + folder_;
  const std::string program =
      Program(kGiB, kGiB, Again(absl::StrCat("export ", mark, "\nsetsid sleep 300 &\nsleep 0.1\nexit 0")));
  EXPECT_EQ(WhysOf(CardsOf("", program)), std::set<std::string>{""});
  EXPECT_THAT(ProcessesWith(mark), IsEmpty());
}

// What the program's PyTorch was built for: a card that it has no kernels for is not enough, however much memory it
// has.
TEST_F(DryRunCardsTest, CardsThatPyTorchHasNoKernelsForAreNamed) {
  const auto program = [&](const std::vector<std::string>& archs) {
    json info = Info(nullptr, kGiB / 2);
    info["archs"] = archs;
    return Script("program", LeavingText("process-7.json", Books(kGiB)) + LeavingText("info-7.json", info) +
                                 Leaving("history-7.pickle", OutOfMemorySnapshot()));
  };
  const auto without = [&](const std::vector<std::string>& archs) {
    const json cards = CardsOf("--once", program(archs));
    std::set<std::string> out;
    for (const json& row : cards["rows"]) {
      if (row["has_kernels"] == false) out.insert(row["capability"].get<std::string>());
    }
    return out;
  };
  using Names = std::set<std::string>;
  EXPECT_EQ(without({"sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"}), (Names{"6.0", "7.0"}));
  EXPECT_EQ(without({"sm_70", "compute_80"}), Names{"6.0"}) << "text for 8.0 is compiled for what came later";
  EXPECT_EQ(without({"sm_60", "sm_70", "sm_80", "sm_90a"}), (Names{"10.0", "10.3", "12.0", "12.1"}));
  EXPECT_EQ(without({"sm_86"}), (Names{"6.0", "7.0", "7.5", "8.0", "9.0", "10.0", "10.3", "12.0", "12.1"}));
  EXPECT_EQ(without({}), Names{}) << "it is not known";
  EXPECT_EQ(without({"gfx90a"}), Names{});
  const std::string text = Run("dry-run --once -- " + program({"sm_75", "sm_90"})).error;
  EXPECT_THAT(text, AllOf(HasSubstr("PyTorch 2.14.1 as it is here has no kernels for RTX4060, RTX3070, "),
                          HasSubstr("no card that it was run as is enough")));
  EXPECT_THAT(
      Run("dry-run --device V100-32GB -- " + program({"sm_75", "sm_90"})).error,
      HasSubstr("PyTorch 2.14.1 as it is here has no kernels for V100-32GB: what is said of its memory is of a build "
                "that has (here are sm_75, sm_90)"));
  EXPECT_THAT(Run("dry-run --device T4 -- " + program({"sm_75"})).error, Not(HasSubstr("no kernels")));
}

// A context is 409 MiB: a process whose accounting saw less than two until it ended shared the device with none.
TEST_F(DryRunCardsTest, AProcessThatCameAndWentBeforeSharesNothing) {
  const auto answer = [&](std::uint64_t seen_mib) {
    const std::string program = Script("program", LeavingText("process-6.json", Books(seen_mib << 20)) +
                                                      LeavingText("process-7.json", Books(20 * kGiB)) +
                                                      LeavingText("info-7.json", Info(nullptr, 19 * kGiB)) +
                                                      Leaving("history-7.pickle", OutOfMemorySnapshot()));
    return json::parse(Run("dry-run --once --json -- " + program).out, nullptr, false);
  };
  EXPECT_TRUE(answer(500)["cards"].is_object());
  const json shared = answer(900);
  EXPECT_TRUE(shared["cards"].is_null());
  EXPECT_THAT(shared["notes"].dump(), HasSubstr("several processes share a device"));
}

TEST_F(DryRunCardsTest, AProgramThatEndedBeforeItsEndIsNotRunAgain) {
  const Result result = Run("dry-run --json -- " + Program(kGiB, kGiB, "exit 1"));
  const json cards = json::parse(result.out, nullptr, false)["cards"];
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(cards["runs"], IsEmpty());
  EXPECT_EQ(cards["why_no_runs"], "the program ended before its end");
}

}  // namespace
}  // namespace ashlar
