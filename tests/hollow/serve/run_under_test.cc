// `ashlar run-under` from the outside: by itself over the hollow device, beneath `ashlar dry-run`, with a recording.
#include <algorithm>
#include <cstdlib>
#include <string>

#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "tests/hollow/record/program_run.h"

namespace ashlar {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class RunUnderTest : public AshlarTest {
 protected:
  // It needs a GPU, or what stands for one beneath it.
  CommandResult RunUnder(const std::string& flags, const std::string& client) const {
    const std::string drivers = std::filesystem::path(ASHLAR_HOLLOW_DRIVER).parent_path().string();
    return Shell(absl::StrCat("export LD_LIBRARY_PATH=", drivers, " LD_PRELOAD=", ASHLAR_HOLLOW_LIBRARY,
                              "\nashlar run-under ", flags, " -- ", client));
  }
};

constexpr char kThreads[] = ASHLAR_RECORD_CLIENT " threads";  // 8 threads, 1,000 turns each
constexpr char kLeak[] = ASHLAR_RECORD_CLIENT " end return";

TEST_F(RunUnderTest, AServedProgramIsToldInALine) {
  const CommandResult run = RunUnder("--serve", kThreads);
  EXPECT_EQ(run.code, 0) << run.error;
  EXPECT_THAT(run.error, AllOf(HasSubstr("served 8,000 allocations and 8,000 frees by "), HasSubstr("not freed 0 B"),
                               Not(HasSubstr("history"))));
  EXPECT_THAT(RunUnder("--serve", kLeak).error, HasSubstr("not freed 5.00 MiB"));
  EXPECT_THAT(RunUnder("--serve", "echo nothing").error, HasSubstr("ashlar: nothing was served"));
}

TEST_F(RunUnderTest, TheProgramsOwnEndIsItsExitCode) {
  EXPECT_EQ(RunUnder("--serve", ASHLAR_RECORD_CLIENT " end kill").code, 137);
  EXPECT_EQ(RunUnder("--serve", "sh -c \"exit 9\"").code, 9);
  EXPECT_EQ(RunUnder("--serve", "no_such_program").code, 127);
}

TEST_F(RunUnderTest, BeneathDryRunTheHistoryIsOfTheDevice) {
  const CommandResult bare = Shell(absl::StrCat("ashlar dry-run --device A10 --json -- ", kThreads));
  const CommandResult served =
      Shell(absl::StrCat("ashlar dry-run --device A10 --json -- ", ASHLAR_PROGRAM, " run-under --serve -- ", kThreads));
  EXPECT_EQ(served.code, 0) << served.error;
  const auto events = [](const CommandResult& run) {
    const std::string source = json::parse(run.out, nullptr, false)["explanation"]["source"].dump();
    const std::size_t at = source.find("device 0, ");
    std::string digits = at == std::string::npos ? "" : source.substr(at + sizeof("device 0, ") - 1);
    digits.erase(std::remove(digits.begin(), digits.end(), ','), digits.end());
    return std::atoi(digits.c_str());
  };
  EXPECT_GE(events(bare), 16000) << bare.out;
  EXPECT_GT(events(served), 0);
  EXPECT_LT(events(served), 200) << "of some segments";
}

// What the driver said is in use has segments in the place of allocations where the program is served.
std::string WithoutDriver(const std::string& text) {
  const std::size_t begin = text.find("beside: the context");
  if (begin == std::string::npos) return text;
  const std::size_t line = text.rfind('\n', begin) + 1;
  return text.substr(0, line) + text.substr(text.find("\n\n", begin));
}

TEST_F(RunUnderTest, TheRecordIsOfTheProgramServedOrNot) {
  EXPECT_EQ(RunUnder("--record -o a.ashlar", kLeak).code, 0);
  const CommandResult both = RunUnder("--record --serve -o b.ashlar", kLeak);
  EXPECT_THAT(both.error, AllOf(HasSubstr("served 1 allocation and 0 frees"), HasSubstr("the history is in b.ashlar")));
  const CommandResult a = Shell("ashlar explain a.ashlar"), b = Shell("ashlar explain b.ashlar");
  EXPECT_THAT(a.out, AllOf(HasSubstr("NOT FREED   (5.00 MiB"), HasSubstr("LeakHere")));
  EXPECT_EQ(WithoutDriver(a.out), WithoutDriver(b.out));
  EXPECT_THAT(RunUnder("--record --serve", ASHLAR_RECORD_CLIENT " fail").error, HasSubstr("OUT OF MEMORY"));
}

TEST_F(RunUnderTest, SettingsAreOfTheFlag) {
  const CommandResult wrong = RunUnder("--serve --conf no_such_key:1", kLeak);
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.error, AllOf(HasSubstr("--conf"), HasSubstr("no_such_key")));
  EXPECT_EQ(RunUnder("--serve --conf borrow_across_streams:True", kLeak).code, 2);
  // A wrong setting of the environment is found when the program first asks: it runs, and is not served.
  setenv("ASHLAR_CONF", "no_such_key:1", 1);
  EXPECT_THAT(RunUnder("--serve", kLeak).error, AllOf(HasSubstr("is not served: "), HasSubstr("no_such_key")));
  unsetenv("ASHLAR_CONF");
  EXPECT_THAT(RunUnder("--serve --conf max_split_size_mb:64", kLeak).error,
              HasSubstr("served 1 allocation and 0 frees"));
}

TEST_F(RunUnderTest, WhatIsMissingIsSaidInALine) {
  EXPECT_THAT(RunUnder("", kLeak).error, HasSubstr("give --record, --serve or both"));
  EXPECT_EQ(RunUnder("", kLeak).code, 2);
  EXPECT_THAT(RunUnder("--record --conf a:1", kLeak).error, HasSubstr("--conf is of --serve"));
  EXPECT_THAT(RunUnder("--serve -o x", kLeak).error, HasSubstr("-o is of --record"));
  EXPECT_THAT(Shell("ashlar run-under --serve").error, HasSubstr("give the program, as in: "));
  // A program that no library can be preloaded into.
  std::ofstream(folder() + "main.c") << "int main(void) { return 0; }\n";
  if (Shell("cc -static -o still main.c").code != 0) GTEST_SKIP() << "no static C library here";
  const CommandResult still = RunUnder("--serve", "./still");
  EXPECT_EQ(still.code, 3);
  EXPECT_THAT(still.error, HasSubstr("still: statically linked: no library can be preloaded into it"));
}

}  // namespace
}  // namespace ashlar
