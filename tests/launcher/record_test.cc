// `ashlar record` from the outside: the program is not preloaded, its history is kept, a failure is explained.
#include <filesystem>
#include <string>
#include <vector>

#include "tests/launcher/launched_test.h"

namespace ashlar {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

constexpr std::uint64_t kRecordMiB = std::uint64_t{1} << 20;

class RecordCommandTest : public LaunchedTest {
 protected:
  RecordCommandTest() { std::filesystem::current_path(folder_); }
  ~RecordCommandTest() override { std::filesystem::current_path("/"); }

  std::string Recorded(int code = 0) const {
    return Script("recorded", LeavingText("info-7.json", Info(nullptr, 100 * kRecordMiB)) +
                                  Leaving("history-7.pickle", OutOfMemorySnapshot()) + "exit " + std::to_string(code));
  }
};

TEST_F(RecordCommandTest, TheHistoryIsWhereItIsSaidToBe) {
  const Result usual = Run("record -- " + Recorded(5));
  EXPECT_EQ(usual.code, 5) << "the program's own";
  EXPECT_THAT(usual.out, IsEmpty());
  EXPECT_EQ(usual.error,
            "ashlar: the history is in ashlar-history.pickle; see it with: ashlar explain ashlar-history.pickle\n");
  EXPECT_EQ(FileBytes(folder_ + "ashlar-history.pickle"), FileBytes(OutOfMemorySnapshot()));
  const std::string named = folder_ + "named.pickle";
  EXPECT_THAT(Run("record -o " + named + " -- " + Recorded()).error, HasSubstr("the history is in " + named));
  EXPECT_EQ(Run("explain " + named).code, 0);
}

TEST_F(RecordCommandTest, TheProgramRunsOnWhatIsThere) {
  setenv("PYTHONPATH", "/mine", 1);
  const Result result = Run("record --history 12 -- env");
  unsetenv("PYTHONPATH");
  EXPECT_THAT(result.out, AllOf(HasSubstr("\nPYTHONPATH=" + folder_ + "python:/mine\n"), HasSubstr("ASHLAR_RECORD=/"),
                                HasSubstr("ASHLAR_HISTORY=12\n")));
  EXPECT_THAT(result.out, AllOf(Not(HasSubstr("LD_PRELOAD")), Not(HasSubstr("ASHLAR_HOLLOW_RUN"))));
}

TEST_F(RecordCommandTest, AFailureIsExplained) {
  const std::string program = Script("fails", LeavingText("info-7.json", Info(nullptr, 100 * kRecordMiB, 1)) +
                                                  Leaving("oom-7-1.pickle", OutOfMemorySnapshot()) + "exit 1");
  const Result result = Run("record -- " + program);
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.error, AllOf(StartsWith("process 7: OUT OF MEMORY"), HasSubstr("fragmentation")));
  EXPECT_EQ(FileBytes(folder_ + "ashlar-history.pickle"), FileBytes(OutOfMemorySnapshot()));
}

TEST_F(RecordCommandTest, SeveralProcessesAreKeptInAFolder) {
  std::string lines;
  for (const int rank : {0, 1}) {
    const std::string pid = std::to_string(40 + rank);
    lines += LeavingText("info-" + pid + ".json", Info(rank, 100 * kRecordMiB)) +
             Leaving("history-" + pid + ".pickle", OutOfMemorySnapshot());
  }
  const Result result = Run("record -o ranks -- " + Script("ranks_program", lines));
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.error, HasSubstr("the history is in ranks; see it with: ashlar explain ranks/FILE"));
  for (const char* rank : {"0", "1"}) {
    EXPECT_TRUE(std::filesystem::exists(folder_ + "ranks/history-rank" + rank + ".pickle")) << rank;
  }
}

TEST_F(RecordCommandTest, WhatWasNotRecordedIsOneLine) {
  ExpectError(Run("record -- true"), 0, {"there is no history to keep", "device memory"});
  EXPECT_FALSE(std::filesystem::exists(folder_ + "ashlar-history.pickle"));
  ExpectError(Run("record -- sh -c 'exit 9'"), 9, {"there is no history to keep"});
  ExpectError(Run("record -o /proc/none -- " + Recorded()), 3, {"cannot write /proc/none"});
  ExpectError(Run("record -o /proc/none -- " + Recorded(8)), 8, {"cannot write /proc/none"});
  ExpectError(Run("record"), 2, {"record", "--"});
  ExpectError(Run("record --history many -- true"), 2, {"--history"});
}

TEST_F(RecordCommandTest, ProgramsThatCannotBeRunEndAsInAShell) {
  ExpectError(Run("record -- no_such_program"), 127, {"no_such_program", "PATH"});
  ExpectError(Run("record -- ./none"), 127, {"./none", "No such file"});
  ExpectError(Run("record -- " + Write("plain_file", "text")), 126, {"plain_file", "Permission denied"});
}

// A signal to the command is the program's, which may leave its history as it ends.
TEST_F(RecordCommandTest, ASignalGoesToTheProgramAndItsHistoryIsKept) {
  const std::string program =
      Script("waits", "end() {\n" + Leaving("history-7.pickle", OutOfMemorySnapshot()) + "exit 9\n}\ntrap end TERM\n" +
                          "printf %s $ASHLAR_RECORD\nkill -TERM $PPID\nwhile :; do sleep 0.05; done\n");
  const Result result = Run("record -o caught.pickle -- " + program);
  EXPECT_EQ(result.code, 9) << result.error;
  EXPECT_TRUE(std::filesystem::exists(folder_ + "caught.pickle"));
  EXPECT_THAT(result.out, StartsWith("/"));
  EXPECT_FALSE(std::filesystem::exists(result.out));
  const Result killed = Run("record -- sh -c 'kill -9 $$'");
  EXPECT_EQ(killed.code, 137);
}

TEST_F(RecordCommandTest, WithoutThePythonPartNothingIsStarted) {
  std::filesystem::remove(folder_ + "python/sitecustomize.py");
  const Result result = Run("record -- env");
  EXPECT_NE(result.code, 0);
  EXPECT_THAT(result.out, IsEmpty());
  EXPECT_THAT(result.error, HasSubstr("looked for sitecustomize.py in " + folder_ + "python; set ASHLAR_HOLLOW_LIB"));
}

}  // namespace
}  // namespace ashlar
