// The bound of hand-made traces with numbers worked out by hand; text, JSON and schema agree; a certificate that comes
// with a problem is checked.
#include "commands/bound/bound.h"

#include <string>

#include "commands/bound/bound.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/commands/printed.h"

namespace ashlar::tests {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;

answers::BoundAnswer MustBound(const std::string& trace, const answers::ReplaySettings& settings = {}) {
  const absl::StatusOr<answers::TracedRun> run = answers::TraceInput(*answers::LoadInput(trace), settings);
  EXPECT_TRUE(run.ok()) << run.status();
  absl::StatusOr<answers::BoundAnswer> bound = answers::BoundOfTrace("x", *run, 1'000'000);
  EXPECT_TRUE(bound.ok()) << bound.status();
  return *std::move(bound);
}

Json ExpectSoundBound(const answers::BoundAnswer& report, SchemaCheck& schema) {
  const Json document = Json::parse(report::ToJson(report));
  schema.Check(document);
  EXPECT_THAT(schema.errors(), IsEmpty());
  ExpectFitsOneScreen(report::ToText(report));
  EXPECT_LE(document["lower_bound"], document["packing"]);
  return document;
}

SchemaCheck BoundSchema() {
  return SchemaCheck(Json::parse(FileBytes(ASHLAR_SOURCE_DIR "/docs/schemas/bound.schema.json")));
}

// 30 MiB, freed, then 31 MiB: 31 are needed at one time; PyTorch's cache holds both segments, 30 and 32. Expandable
// segments of 20 MiB pages hold 40 once, and rounding both to 32 lets the second have the memory of the first.
TEST(BoundTest, HandMadeNumbers) {
  SchemaCheck schema = BoundSchema();
  EXPECT_THAT(schema.SchemaFaults(), IsEmpty());
  const answers::BoundAnswer report = MustBound("a 1 31457280 0\nf 1\na 2 32505856 0\n");
  const Json document = ExpectSoundBound(report, schema);
  EXPECT_EQ(document["lower_bound"], 31 * kMiB);
  EXPECT_EQ(document["packing"], 31 * kMiB);
  EXPECT_EQ(document["packing_is_optimal"], true);
  EXPECT_EQ(document["reserved"], 62 * kMiB);
  EXPECT_EQ(document["reserved_above_bound"], 1.0);
  bool is_seen = false;
  for (const Json& row : document["what_if"]) {
    if (row["conf"] != "expandable_segments:True") continue;
    is_seen = true;
    EXPECT_EQ(row["peak_reserved_bytes"], 40 * kMiB);
    EXPECT_DOUBLE_EQ(row["gap_closed"].get<double>(), 22.0 / 31);
  }
  EXPECT_TRUE(is_seen);
  EXPECT_THAT(report::ToText(report), HasSubstr("closes 97 % of the gap: 30.00 MiB of 31.00 MiB"));
  EXPECT_EQ(report.problem.offsets.size(), 2u);
}

TEST(BoundTest, TheExample) {
  SchemaCheck schema = BoundSchema();
  const answers::BoundAnswer report = MustBound(FileBytes(ASHLAR_SOURCE_DIR "/docs/examples/training_oom.pickle"));
  const Json document = ExpectSoundBound(report, schema);
  EXPECT_EQ(document["packing_is_optimal"], true);
  EXPECT_GT(document["reserved"], document["packing"]);
}

TEST(BoundTest, NothingAliveIsNoDivisionByZero) {
  SchemaCheck schema = BoundSchema();
  const Json document = ExpectSoundBound(MustBound("y\n"), schema);
  EXPECT_EQ(document["lower_bound"], 0);
  EXPECT_TRUE(document["reserved_above_bound"].is_null());
}

TEST(BoundTest, AProblemsOwnOffsetsAreChecked) {
  SchemaCheck schema = BoundSchema();
  formats::PackingProblem problem{{"a", "b"}, {{0, 3, 4}, {2, 9, 5}}, {6, 0}};
  const absl::StatusOr<answers::BoundAnswer> good = answers::BoundOfProblem("x", problem, 1000);
  ASSERT_TRUE(good.ok()) << good.status();
  const Json document = ExpectSoundBound(*good, schema);
  EXPECT_EQ(document["unit"], "units");
  EXPECT_EQ(document["given_packing"], 10);
  EXPECT_EQ(document["packing"], 9);
  EXPECT_TRUE(document["reserved"].is_null());
  problem.offsets = {4, 0};
  const absl::Status bad = answers::BoundOfProblem("x", problem, 1000).status();
  EXPECT_THAT(std::string(bad.message()), HasSubstr("buffers 0 and 1 are alive together and overlap"));
  problem.offsets = {UINT64_MAX, 0};
  EXPECT_FALSE(answers::BoundOfProblem("x", problem, 1000).ok());
}

}  // namespace
}  // namespace ashlar::tests
