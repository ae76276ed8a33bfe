// ashlar/explain.h says what the program `ashlar explain` says of the same file.
#include "ashlar/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace ashlar {
namespace {

using testing::HasSubstr;

const std::string kTraining = ASHLAR_SOURCE_DIR "/docs/examples/training_oom.pickle";
const std::string kMessage = ASHLAR_SOURCE_DIR "/docs/examples/oom_message.txt";

std::string OutputOf(const std::string& command) {
  std::string out;
  std::FILE* pipe = popen(command.c_str(), "r");
  std::array<char, 4096> chunk{};
  while (const std::size_t got = std::fread(chunk.data(), 1, chunk.size(), pipe)) out.append(chunk.data(), got);
  EXPECT_EQ(pclose(pipe), 0) << command;
  return out;
}

TEST(ApiExplainTest, SaysWhatTheProgramSays) {
  const std::string program = ASHLAR_BINARY_DIR "/bin/ashlar explain ";
  for (const std::string& file : {kTraining, kMessage}) {
    EXPECT_EQ(*ExplainFile(file), OutputOf(program + file));
    EXPECT_EQ(*ExplainFile(file, {.as_json = true}), OutputOf(program + "--json " + file));
  }
}

TEST(ApiExplainTest, BytesAreAsGoodAsAFile) {
  std::ifstream in(kMessage, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), {});
  EXPECT_EQ(*ExplainBytes(bytes), *ExplainFile(kMessage));
}

TEST(ApiExplainTest, ProgressIsTold) {
  std::vector<std::string> stages;
  ASSERT_TRUE(ExplainFile(kTraining, {.progress = [&](const std::string& stage) { stages.push_back(stage); }}).ok());
  EXPECT_THAT(stages, testing::Not(testing::IsEmpty()));
}

TEST(ApiExplainTest, ErrorsNameTheFileAndTheOption) {
  EXPECT_TRUE(absl::IsNotFound(ExplainFile("/no/such/file").status()));
  const absl::Status none = ExplainBytes("nothing of the kind").status();
  EXPECT_TRUE(absl::IsInvalidArgument(none));
  EXPECT_THAT(std::string(none.message()), HasSubstr("not a PyTorch memory snapshot"));
  EXPECT_TRUE(absl::IsOutOfRange(ExplainFile(kTraining, {.device = 99}).status()));
  EXPECT_TRUE(absl::IsOutOfRange(ExplainFile(kTraining, {.capacity_bytes = 0}).status()));
  EXPECT_TRUE(absl::IsOutOfRange(ExplainFile(kTraining, {.memory_fraction = 2}).status()));
}

}  // namespace
}  // namespace ashlar
