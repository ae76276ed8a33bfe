// `ashlar run`: its JSON by the schema, and what is said where a capture cannot be written.
#include <cstdlib>
#include <string>

#include "nlohmann/json.hpp"
#include "tests/commands/schema_check.h"
#include "tests/console/program_run.h"

namespace ashlar {
namespace {

using nlohmann::json;
using testing::IsEmpty;

class RunTest : public CliTest {
 protected:
  const std::string gpt_ = "run gpt_training --model tiny --batch 2 --lengths uniform:8-64 --steps 2 ";
};

TEST_F(RunTest, JsonIsAsTheSchemaSays) {
  tests::SchemaCheck schema(json::parse(FileBytes(ASHLAR_SOURCE_DIR "/docs/schemas/run.schema.json")));
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

// No GPU is visible, whether there is one, a driver and device code in this build, or not.
TEST_F(RunTest, WithoutAGpuOneLineSaysSo) {
  ::setenv("CUDA_VISIBLE_DEVICES", "", 1);
  for (const char* flags : {"--device cuda", "--device cuda --capacity 1MiB --json"}) {
    ExpectError(Run(gpt_ + flags), 2, {"--device cuda: ", "CUDA", ": use --device host, which computes on the CPU"});
  }
  ExpectError(Run(gpt_ + "--device cuda --capacity 1MB?"), 2, {"--capacity: "});
  ExpectError(Run(gpt_ + "--capacity 0"), 2, {"--capacity: '0' is not between 1 B and 16.00 TiB"});
  ExpectError(Run(gpt_ + "--device gpu"), 2, {"--device: there is no device 'gpu': sim, host, cuda"});
}

TEST_F(RunTest, WhatCannotBeCapturedIsOneLine) {
  for (const char* name : {"none/run.ashlar", "none/run.pickle"}) {
    ExpectError(Run(gpt_ + "--capture '" + folder_ + name + "'"), 3, {"cannot write", name});
  }
  ExpectError(Run(gpt_ + "--freeze none --capture '" + folder_ + "run.ashlar'"), 2, {"--freeze: 'none'"});
  EXPECT_FALSE(std::filesystem::exists(folder_ + "run.ashlar"));
}

// A config.json of another family is not run with this one's defaults.
TEST_F(RunTest, AModelOfAnotherFamilyIsRefused) {
  const std::string gpt2 = Write("gpt2.json", R"({"model_type": "gpt2", "n_embd": 64})");
  ExpectError(Run("run bert_training --model " + gpt2), 2, {gpt2, "\"model_type\" is not \"bert\""});
  const std::string bert = Write("bert.json", R"({"model_type": "bert", "hidden_size": 64})");
  ExpectError(Run("run gpt_training --model " + bert), 2, {bert, "\"model_type\" is not \"gpt2\""});
  ExpectError(Run("run gpt_training --model " + folder_), 2, {"is a folder"});
  ExpectError(Run(gpt_ + "--seed -1"), 2, {"--seed: Value -1 not in range 0 to 1000000000000"});
}

}  // namespace
}  // namespace ashlar
