// Three well-known out-of-memory messages, from the text to the JSON. Expected figures are worked out by hand from the
// printed ones; a printed figure stands for half a unit of its last digit either side.
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "analyzer/formats/oom/oom_message.h"
#include "commands/explain/explain.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/analyzer/formats/oom/messages.h"
#include "tests/commands/printed.h"

namespace ashlar::tests {
namespace {

using testing::HasSubstr;

constexpr double kGi = 1024.0 * 1024 * 1024;
constexpr double kMi = 1024.0 * 1024;

nlohmann::json ExplainMessageExplained(const char* message, const answers::ExplainSettings& options = {}) {
  SchemaCheck schema(ExplainSchema());
  const std::vector<formats::OomMessage> found = formats::FindOomMessages(message);
  EXPECT_EQ(found.size(), 1u);
  return ExpectSound(answers::ExplainMessage(found.at(0), options), schema);
}

double Number(const nlohmann::json& value) { return value.get<double>(); }

// Middles of printed figures are told to a byte or two.
void ExpectBytes(const nlohmann::json& value, double expected) { EXPECT_NEAR(Number(value), expected, 4) << value; }

// All three: total = reserved + outside + free, and the gap is stranded as a whole.
void ExpectWhole(const nlohmann::json& json) {
  const nlohmann::json& parts = json["accounting"];
  EXPECT_EQ(Number(parts["total_bytes"]),
            Number(parts["reserved_bytes"]) + Number(parts["outside_bytes"]) + Number(parts["free_bytes"]));
  EXPECT_EQ(Number(parts["reserved_bytes"]), Number(parts["allocated_bytes"]) + Number(parts["stranded_bytes"]));
  for (const char* unknown : {"live_bytes", "rounding_bytes"}) EXPECT_TRUE(parts[unknown].is_null()) << unknown;
  EXPECT_TRUE(json["request_bytes"].is_null());
  EXPECT_TRUE(json["what_if"].empty());
  EXPECT_TRUE(json["paste"].is_null());
  EXPECT_TRUE(json["fidelity"].is_null());
  EXPECT_TRUE(json["peak"]["reserved_bytes"].is_null());
  EXPECT_THAT(json["next_lines"].dump(), HasSubstr("_record_memory_history"));
}

TEST(ExplainMessageTest, TabularBertOnT4IsCapacity) {
  const nlohmann::json json = ExplainMessageExplained(oom_messages::kTabularT4);
  ExpectWhole(json);
  EXPECT_EQ(json["verdict"], "capacity");
  EXPECT_EQ(json["verdict_certain"], true);
  const nlohmann::json& parts = json["accounting"];
  ExpectBytes(parts["total_bytes"], 14.76 * kGi);
  ExpectBytes(parts["allocated_bytes"], 12.32 * kGi);
  ExpectBytes(parts["reserved_bytes"], 13.06 * kGi);
  ExpectBytes(parts["free_bytes"], 835.88 * kMi);
  ExpectBytes(parts["outside_bytes"], (14.76 - 13.06) * kGi - 835.88 * kMi);
  ExpectBytes(parts["stranded_bytes"], (13.06 - 12.32) * kGi);
  EXPECT_NEAR(Number(parts["outside_bytes"]) / kGi, 0.88, 0.005);
  EXPECT_NEAR(Number(parts["stranded_bytes"]) / kMi, 757.8, 0.05);
  ExpectBytes(json["tried_bytes"], 2.69 * kGi);
  // 2.69 GiB printed: a multiple of 2 MiB in [2.685, 2.695] GiB, the request up to 2 MiB below it.
  EXPECT_LE(Number(json["request_interval_bytes"][0]), 2.688 * kGi);
  EXPECT_GE(Number(json["request_interval_bytes"][0]), 2.683 * kGi);
  EXPECT_GE(Number(json["request_interval_bytes"][1]), 2.691 * kGi);
  EXPECT_LE(Number(json["request_interval_bytes"][1]), 2.695 * kGi);
  EXPECT_NEAR(Number(json["headroom_bytes"]) / kGi, -1.13, 0.006);
  EXPECT_LE(Number(json["headroom_interval_bytes"][0]), Number(json["headroom_bytes"]));
  EXPECT_GE(Number(json["headroom_interval_bytes"][1]), Number(json["headroom_bytes"]));
  EXPECT_LT(Number(json["headroom_interval_bytes"][1]), 0);
  // 13.06 against 12.32 is not ">>": the message's own advice is the wrong lever.
  EXPECT_THAT(json["evidence"].dump() + json["notes"].dump(), HasSubstr("max_split_size_mb"));
}

TEST(ExplainMessageTest, CutMessageOfV100IsFragmentation) {
  const nlohmann::json json = ExplainMessageExplained(oom_messages::kCutV100);
  ExpectWhole(json);
  EXPECT_EQ(json["verdict"], "fragmentation");
  EXPECT_EQ(json["verdict_certain"], true);
  const nlohmann::json& parts = json["accounting"];
  EXPECT_NEAR(Number(parts["outside_bytes"]) / kGi, 1.14, 0.005);
  EXPECT_NEAR(Number(parts["stranded_bytes"]) / kMi, 1310.7, 0.05);
  EXPECT_EQ(json["tried_bytes"], 220 * kMiB);
  EXPECT_EQ(json["request_interval_bytes"], nlohmann::json::array({218 * kMiB + 1, 220 * kMiB}));
  EXPECT_NEAR(Number(json["headroom_bytes"]) / kGi, 1.26, 0.006);
  EXPECT_GT(Number(json["headroom_interval_bytes"][0]), 0);
  // The gap rests on two figures, each off by up to 0.005 GiB; the free memory adds up to 0.005 MiB.
  const double width = Number(json["headroom_interval_bytes"][1]) - Number(json["headroom_interval_bytes"][0]);
  EXPECT_NEAR(width / kMi, 4 * 0.005 * 1024 + 2 * 0.005, 0.02);
  EXPECT_THAT(json["evidence"].dump(), HasSubstr("18.56 MiB"));
  EXPECT_THAT(json["source"].get<std::string>(), HasSubstr("cut off"));
}

TEST(ExplainMessageTest, ColabBertIsFragmentationWithMuchOutside) {
  const nlohmann::json json = ExplainMessageExplained(oom_messages::kColabBert);
  ExpectWhole(json);
  EXPECT_EQ(json["verdict"], "fragmentation");
  const nlohmann::json& parts = json["accounting"];
  EXPECT_NEAR(Number(parts["outside_bytes"]) / kGi, 1.63, 0.005);
  EXPECT_NEAR(Number(parts["stranded_bytes"]) / kMi, 378.9, 0.05);
  EXPECT_EQ(json["tried_bytes"], 24 * kMiB);
  EXPECT_EQ(json["request_interval_bytes"], nlohmann::json::array({22 * kMiB + 1, 24 * kMiB}));
  EXPECT_NEAR(Number(json["headroom_bytes"]) / kGi, 0.36, 0.006);
  EXPECT_THAT(json["evidence"].dump() + json["notes"].dump(), HasSubstr("1.63 GiB"));
}

// Every family of message makes sound JSON and a text of one screen.
TEST(ExplainMessageTest, EveryFamilyIsSound) {
  for (const char* message : oom_messages::kAll) {
    SCOPED_TRACE(message);
    ExplainMessageExplained(message);
    ExplainMessageExplained(message, WithCapacity(16 * kGiB));
  }
}

TEST(ExplainMessageTest, WhatIsRepeatedIsCounted) {
  const std::string first = oom_messages::kTabularT4;
  const std::string second = oom_messages::kColabBert;
  const std::vector<formats::OomMessage> found =
      formats::FindOomMessages(first + "\n" + second + "\nretry\n" + first + "\n" + first + "\n");
  ASSERT_EQ(found.size(), 4u);
  const std::vector<answers::Explanation> explanations = answers::ExplainMessages(found, {});
  ASSERT_EQ(explanations.size(), 2u);
  EXPECT_EQ(explanations[0].verdict.kind, answers::OomVerdict::kCapacity);
  ASSERT_FALSE(explanations[0].notes.empty());
  EXPECT_EQ(explanations[0].notes.back().name, "repeated");
  EXPECT_EQ(explanations[0].notes.back().count, 3u);
  EXPECT_THAT(report::ToText(explanations[0]), HasSubstr("stands in the text (3)"));
  EXPECT_THAT(report::ToJson({explanations[1]}), testing::Not(HasSubstr("repeated")));
}

TEST(ExplainMessageTest, BehindSoManyDifferentOnesTheyAreCounted) {
  std::string log;
  for (std::size_t i = 0; i < answers::kMostExplainedMessages + 200; ++i) {
    absl::StrAppend(&log, "RuntimeError: CUDA out of memory. Tried to allocate ", 20 + i,
                    ".00 MiB (GPU 0; 14.76 GiB total ",
                    "capacity; 13.20 GiB already allocated; 11.75 MiB free; 13.64 GiB reserved in total by PyTorch)\n");
  }
  const std::vector<answers::Explanation> explanations = answers::ExplainMessages(formats::FindOomMessages(log), {});
  ASSERT_EQ(explanations.size(), answers::kMostExplainedMessages);
  ASSERT_FALSE(explanations.back().notes.empty());
  EXPECT_EQ(explanations.back().notes.back().name, "left_out");
  EXPECT_EQ(explanations.back().notes.back().count, 200u);
}

TEST(ExplainMessageTest, SeveralMessagesAreAnArray) {
  const std::string log = std::string(oom_messages::kTabularT4) + "\n\nretrying\n\n" + oom_messages::kColabBert + "\n";
  std::vector<answers::Explanation> explanations;
  for (const formats::OomMessage& message : formats::FindOomMessages(log)) {
    explanations.push_back(answers::ExplainMessage(message, {}));
  }
  ASSERT_EQ(explanations.size(), 2u);
  const nlohmann::json json = nlohmann::json::parse(report::ToJson(explanations));
  ASSERT_TRUE(json.is_array());
  SchemaCheck schema(ExplainSchema());
  schema.Check(json);
  EXPECT_THAT(schema.errors(), testing::IsEmpty());
  EXPECT_EQ(json[0]["verdict"], "capacity");
  EXPECT_EQ(json[1]["verdict"], "fragmentation");
}

}  // namespace
}  // namespace ashlar::tests
