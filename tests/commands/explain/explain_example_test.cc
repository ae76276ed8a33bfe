// The bundled example is what its generator makes, and its explanation is the one the README shows.
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "analyzer/formats/native/native_log.h"
#include "analyzer/formats/torch/torch_snapshot.h"
#include "commands/explain/explain.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/analyzer/analyses/causes/cause_cases.h"
#include "tests/analyzer/whatif/request_list.h"
#include "tests/commands/example_training.h"
#include "tests/commands/printed.h"
#include "tests/commands/recording.h"

namespace ashlar::tests {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kExampleFile[] = ASHLAR_SOURCE_DIR "/docs/examples/training_oom.pickle";

answers::Explanation MustExplain(const answers::ExplainSettings& options) {
  const absl::StatusOr<trace::Snapshot> snapshot = formats::ReadTorchSnapshot(FileBytes(kExampleFile));
  EXPECT_TRUE(snapshot.ok()) << snapshot.status();
  const absl::StatusOr<answers::Explanation> explanation = answers::ExplainSnapshot(*snapshot, options);
  EXPECT_TRUE(explanation.ok()) << explanation.status();
  return *explanation;
}

// Twelve equal steps of five requests, each of which keeps one of 3 MiB.
trace::Snapshot LeakingTraining() {
  Recording run("", 4 * kGiB);
  for (int step = 0; step < 12; ++step) {
    for (int i = 1; i < 5; ++i) run.Free(run.Allocate(static_cast<std::uint64_t>(20 * i) * kMiB));
    run.Allocate(3 * kMiB);
  }
  return run.Finish();
}

answers::Explanation MustExplainSnapshot(const trace::Snapshot& snapshot) {
  const absl::StatusOr<answers::Explanation> explanation = answers::ExplainSnapshot(snapshot, {});
  EXPECT_TRUE(explanation.ok()) << explanation.status();
  return *explanation;
}

// A native program's calls, with what it had not freed.
trace::Snapshot LeakyProgram() {
  std::ifstream file(ASHLAR_SOURCE_DIR "/tests/hollow/record/corpus/native_log/leaky.log", std::ios::binary);
  const std::string log((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const absl::StatusOr<trace::Snapshot> snapshot = formats::ReadNativeLog(log);
  EXPECT_TRUE(snapshot.ok()) << snapshot.status();
  return *snapshot;
}

TEST(ExplainExampleTest, TheFileIsWhatTheGeneratorWrites) {
  const std::string made = formats::WriteTorchSnapshot(ExampleTraining());
  if (const char* update = std::getenv("ASHLAR_UPDATE_EXAMPLES"); update != nullptr && std::string(update) == "1") {
    std::ofstream(kExampleFile, std::ios::binary) << made;
  }
  EXPECT_TRUE(FileBytes(kExampleFile) == made)
      << kExampleFile
      << " differs from what tests/commands/example_training.cc makes; if that is meant, write it again "
      << "with ASHLAR_UPDATE_EXAMPLES=1 in this test's environment";
}

// What is told of long work: each stage as it begins, and how many of how many.
TEST(ExplainExampleTest, EveryStageIsTold) {
  answers::ExplainSettings options = WithCapacity(12 * kGiB);
  std::vector<std::string> stages;
  options.replay.progress = [&stages](const std::string& stage) { stages.push_back(stage); };
  const answers::Explanation explanation = MustExplain(options);
  std::vector<std::string> expected = {"replaying as recorded", "accounting for every byte"};
  const std::size_t rows = explanation.what_ifs.rows.size();
  for (std::size_t i = 1; i <= rows; ++i) expected.push_back(absl::StrCat("what-ifs ", i, " of ", rows));
  expected.push_back("looking for causes");
  std::size_t found = 0;
  for (const answers::ExplainedCause& cause : explanation.why.causes) {
    found += cause.finding.finding == analyses::Finding::kFound ? 1 : 0;
  }
  for (std::size_t i = 1; i <= found; ++i) expected.push_back(absl::StrCat("testing causes, ", i, " of ", found));
  EXPECT_EQ(stages, expected);
  EXPECT_GT(found, 2u);
}

TEST(ExplainExampleTest, FragmentationReplayedExactlyAndTheRemedyFits) {
  const answers::Explanation explanation = MustExplain(WithCapacity(12 * kGiB));
  EXPECT_EQ(explanation.verdict.kind, answers::OomVerdict::kFragmentation);
  ASSERT_TRUE(explanation.what_ifs.fidelity.has_value());
  EXPECT_TRUE(explanation.what_ifs.fidelity->IsExact());
  EXPECT_EQ(explanation.what_ifs.fidelity->matched, explanation.what_ifs.fidelity->total);
  EXPECT_GT(explanation.what_ifs.fidelity->total, 2'000u);
  EXPECT_EQ(explanation.memory.accounting.outside_bytes, 550 * kMiB);  // what the generator holds back
  EXPECT_THAT(explanation.what_ifs.advice.sentence,
              HasSubstr("expandable_segments:True would have fitted to the end of the"));
  ASSERT_FALSE(explanation.what_ifs.rows.empty());
  const whatif::WhatIfRow& baseline = explanation.what_ifs.rows.front();
  EXPECT_TRUE(baseline.is_baseline);
  EXPECT_EQ(baseline.feasible, false);
  EXPECT_EQ(baseline.peak_reserved_bytes, explanation.memory.peak.reserved_bytes);
  ASSERT_TRUE(explanation.failure.recorded.has_value());
  const analyses::FailedRequest& failed = explanation.failure.recorded->request;
  EXPECT_EQ(failed.segment_bytes, explanation.failure.tried_bytes);
  ASSERT_TRUE(failed.release.has_value());
  EXPECT_TRUE(failed.release->is_minimal);
  EXPECT_LT(failed.release->bytes, 84 * kMiB);  // what was missing: few live bytes hold more
  ASSERT_FALSE(explanation.memory.pins.lines.empty());
  for (const whatif::WhatIfRow& row : explanation.what_ifs.rows) {
    if (row.conf == "expandable_segments:True") {
      EXPECT_EQ(row.feasible, true);
    }
  }
}

// Each block with a text, and pinned memory of the host.
trace::Snapshot Labelled(trace::Snapshot snapshot) {
  const trace::LabelId label = snapshot.labels.Intern({.user_metadata = "training"});
  for (trace::Event& event : snapshot.device_traces[0].Mutable()) event.label = label;
  snapshot.host.segments.emplace_back().address = 4096;
  snapshot.host.segments[0].size_bytes = 4 * kMiB;
  snapshot.host.segments[0].blocks.push_back({4096, 4 * kMiB, 4 * kMiB, trace::BlockState::kLive});
  return snapshot;
}

// Every second live block belongs to a list.
trace::Snapshot Named(trace::Snapshot snapshot) {
  trace::Holders& names = snapshot.holders.emplace();
  names.when = "out_of_memory";
  names.holders.push_back({.kind = "element", .name = "losses[]", .file = "train.py", .line = 31, .function = "train"});
  bool is_named = false;
  for (const trace::SnapshotSegment& segment : snapshot.segments) {
    for (const trace::SnapshotBlock& block : segment.blocks) {
      if (block.state != trace::BlockState::kLive) continue;
      if (is_named) names.blocks.push_back({block.address, 0, {}});
      is_named = !is_named;
    }
  }
  return snapshot;
}

TEST(ExplainExampleTest, WhoHoldsItComesByNameFirstAndByLineSecond) {
  const answers::Explanation explanation = MustExplainSnapshot(Named(ExampleTraining()));
  ASSERT_TRUE(explanation.memory.holders.names.has_value());
  EXPECT_EQ(explanation.memory.holders.names->live_bytes, explanation.memory.accounting.live_bytes);
  std::uint64_t sum = 0;
  for (const analyses::HeldRow& row : explanation.memory.holders.names->rows) sum += row.bytes;
  EXPECT_EQ(sum, explanation.memory.holders.names->live_bytes);
  const std::string text = report::ToText(explanation);
  const std::size_t by_name = text.find("WHO HOLDS IT   (by its name");
  const std::size_t by_line = text.find("ALLOCATED BY");
  ASSERT_NE(by_name, std::string::npos);
  ASSERT_NE(by_line, std::string::npos);
  EXPECT_LT(by_name, by_line);
  EXPECT_THAT(text, HasSubstr("losses[] in train.py:31 train"));
  EXPECT_THAT(report::ToMarkdown({explanation}), HasSubstr("losses\\[\\] in train.py:31 train"));
}

TEST(ExplainExampleTest, TextAndJsonAgreeAndFollowTheSchema) {
  SchemaCheck schema(ExplainSchema());
  EXPECT_THAT(schema.SchemaFaults(), IsEmpty());
  ExpectSound(MustExplain({}), schema);
  ExpectSound(MustExplain(WithCapacity(12 * kGiB)), schema);
  answers::ExplainSettings again = WithCapacity(12 * kGiB);
  again.run_again = answers::SettingRun{"expandable_segments:True", /*ends=*/true, 11 * kGiB};
  ExpectSound(MustExplain(again), schema);
  answers::ExplainSettings elsewhere;
  elsewhere.other_device = answers::OtherDevice{"L4", 22 * kGiB};
  ExpectSound(MustExplain(elsewhere), schema);
  ExpectSound(MustExplainSnapshot(LeakingTraining()), schema);
  ExpectSound(MustExplainSnapshot(PoolCases().front().make().snapshot), schema);
  ExpectSound(MustExplainSnapshot(LeakyProgram()), schema);
  ExpectSound(MustExplainSnapshot(Labelled(LeakingTraining())), schema);
  answers::Explanation held = MustExplainSnapshot(Named(LeakingTraining()));
  held.why.causes.front().finding.holders = {held.memory.holders.names->rows.front().holder};
  ExpectSound(held, schema);
  const std::vector<formats::OomMessage> raised = formats::FindOomMessages(
      "Traceback (most recent call last):\n  File \"train.py\", line 3, in step\n    loss.backward()\n"
      "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 1; 4.00 GiB total capacity; 1.00 GiB "
      "allowed)");
  ASSERT_EQ(raised.size(), 1u);
  ExpectSound(answers::ExplainMessage(raised[0], {}), schema);
  ExpectSound(*answers::ExplainRequests(Stranding(), WithCapacity(kStrandingCapacity)), schema);
  // With these every object of the schema was printed: none is there for nothing.
  EXPECT_THAT(schema.UnseenObjects(), IsEmpty());
}

TEST(ExplainExampleTest, TheStepsOfTheExample) {
  const answers::ProgramView program = MustExplain({}).program;
  EXPECT_EQ(program.steps.source, analyses::StepSource::kPeriod);
  EXPECT_EQ(program.steps.steps.size(), 14u);
  EXPECT_EQ(program.moment, "after step 14, forward");
  EXPECT_TRUE(program.leaks.empty());
}

TEST(ExplainExampleTest, ALeakIsShownToTheByte) {
  const answers::Explanation explanation = MustExplainSnapshot(LeakingTraining());
  ASSERT_EQ(explanation.program.leaks.size(), 1u);
  EXPECT_EQ(explanation.program.leaks[0].bytes_per_step, 3 * kMiB);
  EXPECT_EQ(explanation.program.leaks[0].bytes, 33 * kMiB);  // of the last step it is not known
  const std::string text = report::ToText(explanation);
  EXPECT_THAT(text, HasSubstr("  12 whole steps of about 13 events, from event 1 to "));
  EXPECT_THAT(text, HasSubstr("  by sizes alone"));
  EXPECT_THAT(text, HasSubstr("each step leaves behind    3.00 MiB  no stack recorded: 33.00 MiB in 11 blocks"));
}

// A capacity that cannot be is named and left out, not calculated with.
TEST(ExplainExampleTest, ACapacityBelowWhatWasHeldIsNotUsed) {
  SchemaCheck schema(ExplainSchema());
  const nlohmann::json json = ExpectSound(MustExplain(WithCapacity(8 * kGiB)), schema);
  EXPECT_TRUE(json["accounting"]["total_bytes"].is_null());
  EXPECT_TRUE(json["accounting"]["outside_bytes"].is_null());
  EXPECT_THAT(json["notes"].dump(), HasSubstr("capacity_too_small"));
}

// The validator must see what is wrong, or the tests above prove nothing.
TEST(SchemaCheckTest, SeesMissingForeignAndMistypedKeys) {
  const nlohmann::json good = nlohmann::json::parse(report::ToJson({MustExplain({})}));
  const auto errors_of = [&good](auto spoil) {
    nlohmann::json bad = good;
    spoil(bad);
    SchemaCheck schema(ExplainSchema());
    schema.Check(bad);
    return schema.errors().size();
  };
  EXPECT_EQ(errors_of([](nlohmann::json&) {}), 0u);
  EXPECT_GT(errors_of([](nlohmann::json& bad) { bad.erase("paste"); }), 0u);
  EXPECT_GT(errors_of([](nlohmann::json& bad) { bad["more"] = 1; }), 0u);
  EXPECT_GT(errors_of([](nlohmann::json& bad) { bad["accounting"]["more_bytes"] = 1; }), 0u);
  EXPECT_GT(errors_of([](nlohmann::json& bad) { bad["accounting"]["live_bytes"] = "1"; }), 0u);
  EXPECT_GT(errors_of([](nlohmann::json& bad) { bad["accounting"]["live_bytes"] = -1; }), 0u);
  EXPECT_GT(errors_of([](nlohmann::json& bad) { bad["verdict"] = "guilty"; }), 0u);
  EXPECT_GT(errors_of([](nlohmann::json& bad) { bad["what_if"][0].erase("ooms"); }), 0u);
  EXPECT_GT(errors_of([](nlohmann::json& bad) { bad["headroom_interval_bytes"] = {1}; }), 0u);
  EXPECT_GT(errors_of([](nlohmann::json& bad) { bad["peak"]["utilisation"] = 1.5; }), 0u);
  EXPECT_EQ(errors_of([](nlohmann::json& bad) { bad = nlohmann::json::array({bad, bad}); }), 0u);
  EXPECT_GT(errors_of([](nlohmann::json& bad) { bad = nlohmann::json::array({bad, 1}); }), 0u);
}

}  // namespace
}  // namespace ashlar::tests
