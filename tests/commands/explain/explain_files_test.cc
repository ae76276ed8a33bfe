// Several files to explain, and how the answers are printed.
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/console/program_run.h"

namespace ashlar {
namespace {

constexpr char kRunFile[] = ASHLAR_SOURCE_DIR "/docs/examples/training_oom.pickle";
constexpr char kMessageFile[] = ASHLAR_SOURCE_DIR "/docs/examples/oom_message.txt";

TEST_F(CliTest, SeveralFilesAreAnsweredInTurn) {
  const std::string files = "'" + std::string(kMessageFile) + "' '" + std::string(kRunFile) + "'";
  const nlohmann::json both = nlohmann::json::parse(Run("explain --json " + files).out);
  ASSERT_EQ(both.size(), 2u);  // of two failures
  EXPECT_THAT(both[1]["source"], testing::HasSubstr("PyTorch snapshot"));
  EXPECT_THAT(both[1]["notes"].dump(), testing::HasSubstr("another_failure"));
  ExpectError(Run("explain " + files + " " + folder_ + "none"), 3, {"none", "No such file"});
  const std::string message = " '" + std::string(kMessageFile) + "'";
  EXPECT_THAT(Run("explain --format markdown" + message).out, testing::StartsWith("### OUT OF MEMORY"));
  EXPECT_EQ(Run("explain --format json" + message).out, Run("explain --json" + message).out);
  EXPECT_THAT(Run("explain --color always" + message).out, testing::StartsWith("\033[1;31mOUT OF MEMORY\033[0m"));
  EXPECT_THAT(Run("explain" + message).out + Run("explain --json --color always" + message).out,
              testing::Not(testing::HasSubstr("\033")));
  ExpectError(Run("explain --format html" + message), 2, {"--format", "'html'", "text, json, markdown"});
  ExpectError(Run("explain --json --format text" + message), 2, {"--format"});
}

}  // namespace
}  // namespace ashlar
