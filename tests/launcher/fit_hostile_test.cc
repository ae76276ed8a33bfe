// ashlar fit on programs that reach outside: what their further runs do there comes to nothing, and is told.
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/launcher/launched_test.h"

namespace ashlar {
namespace {

using nlohmann::json;

constexpr std::uint64_t kGiBytes = std::uint64_t{1} << 30;

class HostileFitTest : public LaunchedTest {
 protected:
  void SetUp() override {
    constexpr long kCreateRuleset = 444;  // asked for its version
    if (syscall(kCreateRuleset, nullptr, 0, 1) < 1)
      GTEST_SKIP() << "this Linux keeps no program from writing (Landlock)";
  }

  // It takes 20 GiB as it is, so that it fails on the card, and 9 GiB with the change "a"; first it does these lines,
  // in each run after the first.
  std::string Program(const std::string& lines) const {
    const auto leaves = [&](std::uint64_t bytes) {
      const json change = {
          {"name", "a"},  {"title", "the change a"}, {"group", ""},   {"price", 1},     {"costs", "none"},
          {"alters", ""}, {"applies", true},         {"why_not", ""}, {"where", "x:1"}, {"lines", {"a"}}};
      const json facts = {{"steps", 3},
                          {"failed_step", nullptr},
                          {"phases", json::array()},
                          {"peaks", {{{"steps", 1}, {"allocated", bytes}, {"reserved", bytes}}}},
                          {"changes", {change}}};
      return absl::StrCat(LeavingText("process-7.json", Books(bytes)), LeavingText("info-7.json", Info(nullptr, bytes)),
                          LeavingText("fit-7.json", facts));
    };
    const std::string fails =
        absl::StrCat(LeavingText("process-7.json", Books(14 * kGiBytes, 1)),
                     LeavingText("info-7.json", Info(nullptr, 14 * kGiBytes, 1)), "echo out of memory >&2; exit 1\n");
    return Script("hostile",
                  absl::StrCat("if [ -n \"$ASHLAR_APART\" ]; then\n", lines, "\nfi\nif [ \"$ASHLAR_FIT\" = a ]; then\n",
                               leaves(9 * kGiBytes), "elif [ -n \"$ASHLAR_APART\" ]; then\n", fails, "else\n",
                               leaves(20 * kGiBytes), "fi\nexit 0\n"));
  }
  json Answer(const std::string& program) const {
    const Result result = Run("fit --device T4 --jobs 1 --only a --json -- " + program);
    EXPECT_EQ(result.code, 0) << result.error;
    return json::parse(result.out, nullptr, false);
  }
  static bool HasProcess(const std::string& word) {
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
      std::ifstream file(entry.path() / "cmdline", std::ios::binary);
      if (absl::StrContains(std::string(std::istreambuf_iterator<char>(file), {}), word)) return true;
    }
    return false;
  }
};

// One that leaves its session as well.
TEST_F(HostileFitTest, WhatARunStartsEndsWithIt) {
  const std::string seconds = absl::StrCat("7", getpid(), "1");  // a word that no other process has
  const json answer = Answer(Program(absl::StrCat("sleep ", seconds, " &\nsetsid sleep ", seconds, " &\n")));
  EXPECT_TRUE(answer["set"].is_object()) << answer;
  EXPECT_FALSE(HasProcess(seconds));
}

TEST_F(HostileFitTest, FilesStayAsTheyAre) {
  const std::string kept = Write("kept", "words");
  const json answer = Answer(
      Program(absl::StrCat("rm -f ", kept, "\necho more >> ", kept, "\nmv ", kept, " ", kept, ".old\ntruncate -s 0 ",
                           kept, "\nmkdir ", kept, ".d\nln -s x ", kept, ".link\nchmod 0 ", kept, ".none\n")));
  EXPECT_TRUE(answer["set"].is_object()) << answer;
  EXPECT_EQ(FileBytes(kept), "words");
  for (const char* end : {".old", ".d", ".link"}) {
    EXPECT_FALSE(std::filesystem::exists(std::filesystem::symlink_status(kept + end))) << end;
  }
}

// It has no login to use, and no terminal to ask at.
TEST_F(HostileFitTest, TrackersAreOffAndNobodyIsAsked) {
  const json answer = Answer(Program(
      "[ \"$WANDB_MODE\" = offline ] || exit 11\n[ \"$COMET_MODE\" = DISABLED ] || exit 12\n"
      "[ \"$HF_HUB_OFFLINE\" = 1 ] || exit 13\nread line && exit 14\n( : < /dev/tty ) 2> /dev/null && exit 15\n"));
  EXPECT_TRUE(answer["set"].is_object()) << answer;
}

// By the clock, or by anything else, it comes to another end: a verdict is not made up.
TEST_F(HostileFitTest, ARunThatEndsElsewhereTellsNothing) {
  const Result result = Run("fit --device T4 --jobs 1 -- " + Program("echo the clock says no >&2\nexit 9\n"));
  EXPECT_EQ(result.code, 3);
  EXPECT_THAT(result.error, testing::HasSubstr("cannot be run again"));
  EXPECT_THAT(result.error, testing::HasSubstr("the clock says no"));
}

}  // namespace
}  // namespace ashlar
