// `ashlar run`: its captures in both formats, and its JSON by the schema.
#include <string>

#include "nlohmann/json.hpp"
#include "tests/cli/program_run.h"
#include "tests/report/schema_check.h"

namespace ashlar {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;

class RunTest : public CliTest {
 protected:
  const std::string gpt_ = "run gpt_training --model tiny --batch 2 --lengths uniform:8-64 --steps 2 ";
};

TEST_F(RunTest, JsonIsAsTheSchemaSays) {
  tests::SchemaCheck schema(json::parse(FileBytes(ASHLAR_SOURCE_DIR "/docs/run.schema.json")));
  EXPECT_THAT(schema.SchemaFaults(), IsEmpty());
  for (const char* flags : {"--device sim", "--device host", "--device host --capacity 1MiB"}) {
    const Result result = Run(gpt_ + flags + " --json");
    EXPECT_THAT(result.error, IsEmpty());
    const json document = json::parse(result.out);
    schema.Check(document);
    EXPECT_EQ(result.code, document["out_of_memory"].is_null() ? 0 : 1);
    std::uint64_t parts = 0;
    for (const json& part : document["peak_by_part_bytes"]) parts += part.get<std::uint64_t>();
    EXPECT_EQ(parts, document["peak_requested_bytes"].get<std::uint64_t>());
  }
  EXPECT_THAT(schema.errors(), IsEmpty());
  EXPECT_THAT(schema.UnseenObjects(), IsEmpty());
}

// Both files hold the same requests; the recording replays to the same peak under the rules that it names.
TEST_F(RunTest, CapturesAreTheSameInBothFormats) {
  const std::string pickle = folder_ + "run.pickle", recording = folder_ + "run.ashlar";
  for (const std::string& path : {pickle, recording}) {
    ASSERT_EQ(Run(gpt_ + "--capacity 40MiB --compat torch-2.6 --capture '" + path + "'").code, 0);
  }
  EXPECT_EQ(FileBytes(recording).substr(0, 8), "ASHLARTR");
  const std::string requests = Run("convert '" + recording + "' - --to trace").out;
  EXPECT_GT(requests.size(), 1000u);
  EXPECT_EQ(requests, Run("convert '" + pickle + "' - --to trace").out);
  const json run = json::parse(Run(gpt_ + "--capacity 40MiB --compat torch-2.6 --json").out);
  const json replay = json::parse(Run("replay '" + recording + "' --json").out);
  EXPECT_EQ(replay["peak_reserved"], run["peak_reserved_bytes"]) << replay.dump(1);
  EXPECT_EQ(replay["fidelity"]["final_state_matches"], true);
  EXPECT_EQ(Run("sweep '" + recording + "'").code, 0);
}

TEST_F(RunTest, ARecordingOfAnOutOfMemoryErrorIsExplained) {
  const std::string path = folder_ + "oom.ashlar";
  const Result run = Run(gpt_ + "--capacity 20MiB --capture '" + path + "' --json");
  ASSERT_EQ(run.code, 1) << run.error;
  const json failure = json::parse(run.out)["out_of_memory"];
  const Result explained = Run("explain '" + path + "' --json");
  EXPECT_EQ(explained.code, 0) << explained.error;
  EXPECT_THAT(explained.out, HasSubstr(failure["requested_bytes"].dump()));
  EXPECT_THAT(explained.out, HasSubstr(failure["phase"].get<std::string>()));
}

TEST_F(RunTest, WhatCannotBeCapturedIsOneLine) {
  for (const char* name : {"none/run.ashlar", "none/run.pickle"}) {
    ExpectError(Run(gpt_ + "--capture '" + folder_ + name + "'"), 3, {"cannot write", name});
  }
  ExpectError(Run(gpt_ + "--freeze none --capture '" + folder_ + "run.ashlar'"), 2, {"--freeze: 'none'"});
  EXPECT_FALSE(std::filesystem::exists(folder_ + "run.ashlar"));
}

}  // namespace
}  // namespace ashlar
