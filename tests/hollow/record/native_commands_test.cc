// `ashlar record` and `ashlar dry-run` of a native program, from the outside.
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

constexpr char kClient[] = ASHLAR_RECORD_CLIENT;

class NativeCommandsTest : public AshlarTest {
 protected:
  CommandResult Ashlar(const std::string& command, const std::string& client) const {
    return Shell(absl::StrCat("ashlar ", command, " -- ", kClient, " ", client));
  }
  // `record` needs a GPU, or what stands for one beneath it.
  CommandResult Record(const std::string& flags, const std::string& client) const {
    return Shell(absl::StrCat("export LD_PRELOAD=", ASHLAR_HOLLOW_LIBRARY, "\nashlar record ", flags, " -- ", kClient,
                              " ", client));
  }
};

TEST_F(NativeCommandsTest, DryRunExplainsANativeProgram) {
  const CommandResult run = Ashlar("dry-run --device A10 -o kept.ashlar", "end return");
  EXPECT_EQ(run.code, 0) << run.error;
  EXPECT_THAT(run.error, AllOf(HasSubstr("fits on A10"), HasSubstr("healthy: peak allocated 5.00 MiB"),
                               HasSubstr("record_client (anonymous namespace)::LeakHere < (anonymous namespace)::End"),
                               HasSubstr("NOT FREED   (5.00 MiB in 1 allocation when the trace ends)"),
                               Not(HasSubstr("no history")), Not(HasSubstr("WHICH CARD"))));
  const CommandResult again = Shell("ashlar explain kept.ashlar");
  EXPECT_THAT(again.out, HasSubstr("peak allocated 5.00 MiB"));
  EXPECT_NE(run.error.find(again.out), std::string::npos);  // told twice, the same
}

TEST_F(NativeCommandsTest, TheTableOfCardsHoldsThePeakOfTheAccounting) {
  const CommandResult run = Ashlar("dry-run --json", "end return");
  const json report = json::parse(run.out.substr(run.out.find('{')));
  const json& cards = report["cards"];
  EXPECT_EQ(cards["is_replayed"], false);
  EXPECT_EQ(cards["peak_allocated_bytes"], 6 << 20);  // in pages of 2 MiB
  const std::uint64_t context = report["machine"]["context"]["bytes"];
  EXPECT_EQ(report["peak_bytes"], (6 << 20) + context);
  // The client called, and the recorder passed it on.
  const json& libraries = report["processes"][0]["books"]["devices"][0]["libraries"];
  ASSERT_EQ(libraries.size(), 1U);
  EXPECT_EQ(libraries[0]["name"], "record_client");
  ASSERT_GT(cards["rows"].size(), 5U);
  for (const json& row : cards["rows"]) {
    EXPECT_EQ(row["default"]["headroom_bytes"].get<std::uint64_t>(),
              row["allocator_bytes"].get<std::uint64_t>() - (6 << 20));
    EXPECT_TRUE(row["best_found"].is_null());
  }
  EXPECT_EQ(report["explanation"]["live_at_end"]["bytes"], 5 << 20);
  EXPECT_THAT(Ashlar("dry-run", "end return").error, AllOf(HasSubstr("the peak of the device's accounting, 6.00 MiB"),
                                                           HasSubstr("the least card that is enough")));
}

TEST_F(NativeCommandsTest, AFailureIsExplainedByBothCommands) {
  const CommandResult dry = Ashlar("dry-run --capacity 1GiB", "fail");
  EXPECT_THAT(dry.error, AllOf(HasSubstr("does not fit"), HasSubstr("1 request found no memory"),
                               HasSubstr("capacity: "), HasSubstr("live allocations")));
  const CommandResult recorded = Record("-o kept.ashlar", "fail");
  EXPECT_EQ(recorded.code, 0);
  EXPECT_EQ(recorded.out, "result 2\n");
  EXPECT_THAT(recorded.error, AllOf(HasSubstr("OUT OF MEMORY"), HasSubstr("see it with: ashlar explain kept.ashlar")));
}

TEST_F(NativeCommandsTest, RecordKeepsARecordingOrASnapshot) {
  EXPECT_THAT(Record("", "end return").error, HasSubstr("the history is in ashlar-history.ashlar"));
  EXPECT_THAT(Record("-o kept.pickle", "end return").error, HasSubstr("the history is in kept.pickle"));
  EXPECT_EQ(BytesOf(folder() + "ashlar-history.ashlar").substr(0, 8), "ASHLARTR");
  EXPECT_EQ(BytesOf(folder() + "kept.pickle").substr(0, 1), "\x80");
  const CommandResult a = Shell("ashlar explain ashlar-history.ashlar");
  const CommandResult b = Shell("ashlar explain kept.pickle");
  EXPECT_EQ(a.out, b.out);
  EXPECT_THAT(a.out, HasSubstr("NOT FREED   (5.00 MiB"));
}

TEST_F(NativeCommandsTest, SeveralProcessesAreAFolder) {
  const CommandResult run = Record("-o kept", "fork");
  EXPECT_EQ(run.code, 0) << run.error;
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder() + "kept")) {
    EXPECT_EQ(entry.path().extension(), ".ashlar");
    ++files;
  }
  EXPECT_EQ(files, 2);
}

TEST_F(NativeCommandsTest, AProgramThatWasKilledIsExplainedAsFarAsItCame) {
  const CommandResult run = Ashlar("dry-run", "end kill");
  EXPECT_EQ(run.code, 137);
  EXPECT_THAT(run.error, AllOf(HasSubstr("NOT FREED   (5.00 MiB"), HasSubstr("the log has no end")));
}

TEST_F(NativeCommandsTest, WhatHasNoAllocatorHasNoSettings) {
  Record("-o kept.ashlar", "threads");
  for (const char* command : {"sweep kept.ashlar", "replay kept.ashlar"}) {
    const CommandResult refused = Shell(absl::StrCat("ashlar ", command));
    EXPECT_EQ(refused.code, 3) << command << refused.error;
    EXPECT_THAT(refused.error, AllOf(HasSubstr("no allocator's settings apply"), HasSubstr("ashlar convert")));
  }
  EXPECT_EQ(Shell("ashlar convert kept.ashlar out.trace && ashlar replay out.trace").code, 0);
  EXPECT_EQ(Shell("ashlar check kept.ashlar --max-reserved 8MiB").code, 0);
  EXPECT_EQ(Shell("ashlar check kept.ashlar --max-reserved 1KiB").code, 1);
  const CommandResult bound = Shell("ashlar bound kept.ashlar");
  EXPECT_THAT(bound.out, AllOf(HasSubstr("lower bound"), Not(HasSubstr("as recorded"))));
}

TEST_F(NativeCommandsTest, WithoutTheLibraryThereIsAHistoryOfPyTorchAlone) {
  const std::filesystem::path hollow = std::filesystem::path(ASHLAR_HOLLOW_LIBRARY);
  for (const char* part : {"shims", "python"}) {
    std::filesystem::create_directory_symlink(hollow.parent_path() / part, folder() + part);
  }
  std::filesystem::create_symlink(hollow, folder() + "libashlar_hollow.so");
  const CommandResult run = Shell(absl::StrCat("export ASHLAR_HOLLOW_LIB=", folder(), "libashlar_hollow.so\n",
                                               "ashlar dry-run -- ", kClient, " end return"));
  EXPECT_EQ(run.code, 0);
  EXPECT_THAT(run.error, HasSubstr("no history: "));
}

}  // namespace
}  // namespace ashlar
