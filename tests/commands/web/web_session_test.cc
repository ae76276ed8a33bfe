// A session of the analyzer's page against the program: what both say of the same files.
#include "commands/web/web_session.h"

#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/console/program_run.h"

namespace ashlar {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr char kWebRun[] = ASHLAR_SOURCE_DIR "/docs/examples/training_oom.pickle";
constexpr char kWebMessage[] = ASHLAR_SOURCE_DIR "/docs/examples/oom_message.txt";
constexpr char kWebTrace[] = "a 1 1048577 0\na 2 30000000 0\nf 1\na 3 1048577 0\na 4 512 7\n";

class WebSessionTest : public CliTest {
 protected:
  absl::Status Read(const std::string& name, const std::string& bytes) {
    answers::HeldBytes held(static_cast<char*>(std::malloc(bytes.size() + 1)));
    std::memcpy(held.get(), bytes.data(), bytes.size());
    return session_.Read(name, std::move(held), bytes.size());
  }
  absl::Status ReadNamed(const std::string& path) { return Read(path, FileBytes(path)); }
  std::string Answer(absl::string_view what) {
    const absl::StatusOr<std::string> answer = session_.Answer(what);
    return answer.ok() ? *answer : absl::StrCat("refused: ", answer.status().message());
  }

  std::vector<std::string> stages_;
  answers::WebSession session_{[this](const std::string& stage) { stages_.push_back(stage); }};
};

std::string Quoted(const std::string& path) { return absl::StrCat("'", path, "'"); }

TEST_F(WebSessionTest, AnswersAreThoseOfTheProgram) {
  ASSERT_TRUE(ReadNamed(kWebRun).ok());
  EXPECT_EQ(Answer("text"), Run("explain " + Quoted(kWebRun)).out);
  EXPECT_EQ(Answer("json"), Run("explain --json " + Quoted(kWebRun)).out);
  EXPECT_EQ(Answer("markdown"), Run("explain --format markdown " + Quoted(kWebRun)).out);
  EXPECT_EQ(Answer("sweep-json"), Run("sweep --json " + Quoted(kWebRun)).out);
  EXPECT_THAT(stages_, testing::Contains(HasSubstr("reading")));
}

TEST_F(WebSessionTest, SeveralInputsAreExplainedTogether) {
  ASSERT_TRUE(ReadNamed(kWebMessage).ok());
  ASSERT_TRUE(ReadNamed(kWebRun).ok());
  EXPECT_EQ(Answer("json"), Run("explain --json " + Quoted(kWebMessage) + " " + Quoted(kWebRun)).out);
  EXPECT_EQ(Answer("traces"), "1");
  EXPECT_THAT(Answer("diff"), HasSubstr("refused: two snapshots or traces"));
}

TEST_F(WebSessionTest, TwoTracesAreCompared) {
  const std::string other = Write("other.trace", kWebTrace);
  ASSERT_TRUE(ReadNamed(kWebRun).ok());
  ASSERT_TRUE(ReadNamed(other).ok());
  EXPECT_EQ(Answer("diff-json"), Run("diff --json " + Quoted(kWebRun) + " " + Quoted(other)).out);
  EXPECT_EQ(Answer("diff"), Run("diff " + Quoted(kWebRun) + " " + Quoted(other)).out);
}

TEST_F(WebSessionTest, SettingsAreTheFlagsOfTheProgram) {
  ASSERT_TRUE(ReadNamed(kWebRun).ok());
  const std::string before = Answer("json");
  ASSERT_TRUE(session_.Set("capacity", "12GiB").ok());
  ASSERT_TRUE(session_.Set("device-used", "11.5GiB").ok());
  EXPECT_EQ(Answer("json"), Run("explain --json --capacity 12GiB --device-used 11.5GiB " + Quoted(kWebRun)).out);
  ASSERT_TRUE(session_.Set("capacity", "").ok());
  ASSERT_TRUE(session_.Set("device-used", "").ok());
  EXPECT_EQ(Answer("json"), before);
  const std::vector<std::pair<std::string, std::string>> wrong = {{"capacity", "much"},  {"capacity", "0"},
                                                                  {"device", "-1"},      {"compat", "torch-0.1"},
                                                                  {"conf", "nothing:1"}, {"nonsense", "1"}};
  for (const auto& [key, value] : wrong) {
    const absl::Status status = session_.Set(key, value);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << key;
    EXPECT_THAT(std::string(status.message()), HasSubstr(key));
  }
}

TEST_F(WebSessionTest, OfALongTraceTheLastEventsAreHeldAndThisIsSaid) {
  ASSERT_TRUE(session_.Set("max-events", "50").ok());
  ASSERT_TRUE(ReadNamed(kWebRun).ok());
  EXPECT_EQ(Answer("json"), Run("explain --json --max-events 50 " + Quoted(kWebRun)).out);
  EXPECT_THAT(Answer("json"), HasSubstr("--max-events 50"));
}

TEST_F(WebSessionTest, WhatIsNoInputIsRefusedAsByTheProgramAndTheSessionGoesOn) {
  const std::string whole = FileBytes(kWebRun);
  for (const std::string& bytes :
       {std::string(), std::string("nothing of interest\n"), whole.substr(0, whole.size() / 2),
        std::string("\x1f\x8b\x08", 3), std::string(200, '\xff')}) {
    const std::string file = Write("strange", bytes);
    EXPECT_EQ(absl::StrCat("ashlar: ", Read(file, bytes).message(), "\n"), Run("explain " + Quoted(file)).error);
  }
  EXPECT_THAT(Answer("text"), HasSubstr("no input was read"));
  ASSERT_TRUE(ReadNamed(kWebRun).ok());
  EXPECT_THAT(Answer("tex"), HasSubstr("no answer 'tex'"));
  EXPECT_THAT(Answer("text"), StartsWith("OUT OF MEMORY"));
}

TEST_F(WebSessionTest, APackedFileIsUnpacked) {
  const std::string packed = folder_ + "packed";
  ASSERT_EQ(std::system(absl::StrCat("gzip -c ", Quoted(kWebRun), " > ", Quoted(packed)).c_str()), 0);
  ASSERT_TRUE(Read(kWebRun, FileBytes(packed)).ok());
  EXPECT_EQ(Answer("json"), Run("explain --json " + Quoted(kWebRun)).out);
}

TEST_F(WebSessionTest, ThePageHoldsTheInputsAndNoMarkupOfTheirNames) {
  ASSERT_TRUE(session_.Set("template", "<title><!--ashlar:title--></title>\n<!--ashlar:document-->").ok());
  ASSERT_TRUE(session_.Set("pictures", "1").ok());
  ASSERT_TRUE(Read("run/<img src=x onerror=alert(1)>.pickle", FileBytes(kWebRun)).ok());
  ASSERT_TRUE(Read("rank1.trace", kWebTrace).ok());
  const std::string page = Answer("page");
  EXPECT_THAT(page, HasSubstr("<title>&lt;img src=x onerror=alert(1)&gt;.pickle and 1 more</title>"));
  EXPECT_THAT(page, Not(HasSubstr("<img")));
  EXPECT_THAT(page,
              testing::AllOf(HasSubstr("\"diff\":{"), HasSubstr("\"rank\":1"), HasSubstr("\"kind\":\"observed\"")));
}

}  // namespace
}  // namespace ashlar
