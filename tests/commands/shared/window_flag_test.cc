// --window as a user gives it: what it takes, what it says of a window that is none, and files that are parts.
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/console/program_run.h"

namespace ashlar {
namespace {

using testing::HasSubstr;

constexpr char kWindowExample[] = ASHLAR_SOURCE_DIR "/docs/examples/training_oom.pickle";

nlohmann::json Json(const Result& result) {
  EXPECT_EQ(result.code, 0) << result.error;
  return nlohmann::json::parse(result.out);
}

TEST_F(CliTest, AWindowOfASnapshotReplaysExactly) {
  const std::string example = kWindowExample;
  const nlohmann::json part = Json(Run("replay --json " + example + " --window 40%:60%"));
  EXPECT_EQ(part["fidelity"]["matched"], part["fidelity"]["total"]);
  EXPECT_GT(part["fidelity"]["total"], 100);
  EXPECT_LT(part["requests"], 2000);
  EXPECT_THAT(part["notes"].dump(), HasSubstr("trace_window"));
  EXPECT_EQ(Json(Run("replay --json " + example + " --window 0%:100%"))["notes"].dump().find("trace_window"),
            std::string::npos);
  EXPECT_THAT(Run("explain " + example + " --window :50%").out, HasSubstr("NO FAILURE"));
  EXPECT_THAT(Run("explain " + example + " --window 50%:").out, HasSubstr("OUT OF MEMORY"));
  const std::string file = folder_ + "part.pickle";
  EXPECT_EQ(Run("convert " + example + " " + file + " --window 40%:60%").code, 0);
  EXPECT_EQ(Json(Run("replay --json " + file))["requests"], part["requests"]);
}

TEST_F(CliTest, AWindowThatIsNoneSaysWhy) {
  const std::string example = kWindowExample;
  ExpectError(Run("explain " + example + " --window 5"), 2, {"--window", "FROM:TO"});
  ExpectError(Run("explain " + example + " --window 10000000:"), 2, {"--window", "6,769 events"});
  ExpectError(Run("replay " + example + " --window 60%:40%"), 2, {"--window", "no request"});
  const std::string trace = Write("requests.trace", "a 1 1048577 0\nf 1\na 2 1048577 0\na 3 512 7\n");
  ExpectError(Run("replay " + trace + " --window 1s:"), 2, {"--window", "no times"});
}

// The second block is live at the window's begin, the first is gone.
TEST_F(CliTest, AWindowOfRequestsBeginsWithWhatIsLive) {
  const std::string trace = Write("requests.trace", "a 1 30000000 0\na 2 1048577 0\nf 1\na 3 512 0\nf 2\na 4 512 0\n");
  const nlohmann::json part = Json(Run("replay --json " + trace + " --window 3:5"));
  EXPECT_EQ(part["requests"], 3);
  EXPECT_EQ(part["peak_requested"], 1048577 + 512);
}

// The same bytes on any number of threads.
TEST_F(CliTest, ExplainDoesNotDependOnItsJobs) {
  const std::string explain = "explain --json " + std::string(kWindowExample) + " --jobs ";
  const Result one = Run(explain + "1");
  EXPECT_EQ(one.code, 0) << one.error;
  EXPECT_EQ(one.out, Run(explain + "2").out);
  EXPECT_EQ(one.out, Run(explain + "7").out);
  ExpectError(Run(explain + "0"), 2, {"--jobs"});
}

// A warm replay has memory where the recorded device had it.
TEST_F(CliTest, ACapacityThatIsNotUsedIsSaid) {
  const std::string replay = "replay --json --capacity 12GiB " + std::string(kWindowExample);
  EXPECT_THAT(Json(Run(replay))["notes"].dump(), HasSubstr("limit_not_used"));
  EXPECT_THAT(Json(Run(replay + " --cold"))["notes"].dump(), testing::Not(HasSubstr("limit_not_used")));
}

}  // namespace
}  // namespace ashlar
