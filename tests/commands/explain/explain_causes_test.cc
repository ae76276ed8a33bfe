// Causes as `ashlar explain` shows them: in the text within one screen, in the JSON all of them by the schema.
#include <algorithm>
#include <map>
#include <string>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "analyzer/analyses/causes/cause_table.h"
#include "commands/explain/explain.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/analyzer/analyses/causes/cause_cases.h"
#include "tests/commands/printed.h"

namespace ashlar::tests {
namespace {

using testing::HasSubstr;
using testing::Not;

answers::Explanation ExplainCausesMustExplain(const SeededInput& input) {
  answers::ExplainSettings options;
  options.replay.capacity_bytes = input.total_bytes;
  options.device_used_bytes = input.device_used_bytes;
  if (!input.ranks.empty()) options.other_ranks.assign(input.ranks.begin() + 1, input.ranks.end());
  absl::StatusOr<answers::Explanation> out = answers::ExplainSnapshot(input.snapshot, options);
  EXPECT_TRUE(out.ok()) << out.status();
  return *std::move(out);
}

TEST(ExplainCausesTest, EverySeededCauseIsShown) {
  SchemaCheck schema(ExplainSchema());
  for (const SeededCase& seeded : AllSeeded()) {
    SCOPED_TRACE(seeded.name);
    const answers::Explanation explanation = ExplainCausesMustExplain(seeded.make());
    const nlohmann::json json = ExpectSound(explanation, schema);
    EXPECT_EQ(json["causes"].size(), explanation.why.causes.size());
    const std::string text = report::ToText(explanation);
    EXPECT_THAT(text, HasSubstr("\nWHY"));
    EXPECT_THAT(text, HasSubstr(absl::StrCat("ashlar guide ",
                                             analyses::CauseName(explanation.why.causes[0].finding.kind), ")")));
    bool is_found = false;
    for (const nlohmann::json& cause : json["causes"]) {
      is_found =
          is_found || (cause["name"] == std::string(analyses::CauseName(seeded.truth)) && cause["finding"] == "found");
      EXPECT_EQ(cause["finding"] == "found", !cause["bytes"].is_null());
      EXPECT_EQ(cause["finding"] == "not_in_trace", !cause["missing"].is_null());
      if (cause["finding"] == "found") {
        EXPECT_FALSE(cause["evidence"].empty());
      }
      if (cause["finding"] == "absent") {
        EXPECT_FALSE(cause["counter_evidence"].empty());
      }
    }
    EXPECT_TRUE(is_found);
  }
}

// Holes of together 400 MiB behind blocks in use; a pass of 120 MiB a layer then fails in its sixth layer.
SeededInput FirstPassBesideHoles(int layers) {
  const std::uint64_t weights = static_cast<std::uint64_t>(layers) * 65 * kMiB;
  SeededRun run({.capacity_bytes = 1200 * kMiB + weights + 600 * kMiB + 20 * kMiB});
  run.At({{"data.py", 5, "load"}, {"train.py", 60, "main"}});
  for (int i = 0; i < 10; ++i) {
    run.Free(run.Allocate(120 * kMiB));
    run.Allocate(40 * kMiB);
    core::Block* const hole = run.Allocate(40 * kMiB);
    run.Allocate(40 * kMiB);
    run.Free(hole);
  }
  run.At(
      {{"/lib/torch/nn/modules/linear.py", 109, "__init__"}, {"model.py", 12, "__init__"}, {"train.py", 60, "main"}});
  for (int layer = 0; layer < layers; ++layer) {
    run.Allocate(64 * kMiB);
    run.Allocate(kMiB);
  }
  for (int layer = 0; layer < layers; ++layer) {
    for (const int line : {40, 44}) {
      run.At({{"model.py", line, "forward"}, {"train.py", 60, "main"}});
      run.Allocate(60 * kMiB);
    }
  }
  return run.Finish();
}

TEST(ExplainCausesTest, AFirstStepThatWouldFailFurtherOnIsNoFragmentation) {
  SchemaCheck schema(ExplainSchema());
  const answers::Explanation far = ExplainCausesMustExplain(FirstPassBesideHoles(12));
  const nlohmann::json json = ExpectSound(far, schema);
  EXPECT_EQ(json["verdict"], "capacity") << json["evidence"];
  EXPECT_THAT(far.verdict.evidence.front(), HasSubstr("the rest of the first step needs at least"));
  EXPECT_THAT(report::ToText(far), HasSubstr("gets past; the rest of the first step needs"));
  EXPECT_TRUE(json["paste"].is_null());
  // What must still come fits into the holes: nothing speaks against a setting, and nothing is promised.
  const answers::Explanation near = ExplainCausesMustExplain(FirstPassBesideHoles(7));
  EXPECT_EQ(near.verdict.kind, answers::OomVerdict::kFragmentation) << near.verdict.evidence.front();
  EXPECT_THAT(report::ToText(near), HasSubstr("gets past; nothing is known beyond"));
}

// Three steps, then a pass whose blocks are `times` as large, on a device that they do not fit on.
SeededInput LastBatchLarger(std::uint64_t times) {
  SeededRun run({.capacity_bytes = kGiB});
  for (int step = 0; step < 4; ++step) {
    std::vector<core::Block*> saved;
    for (int line = 0; line < 12; ++line) {
      run.At({{"model.py", 40 + line, "forward"}, {"train.py", 60, "main"}});
      saved.push_back(run.Allocate((step < 3 ? 1 : times) * 8 * kMiB));
    }
    run.At({{"??", 0, "torch::autograd::Engine::thread_main(std::shared_ptr<GraphTask> const&)"}});
    saved.push_back(run.Allocate(2 * kMiB));
    run.Free(saved);
  }
  run.At({{"model.py", 40, "forward"}, {"train.py", 60, "main"}});
  run.Allocate(2 * kGiB);
  return run.Finish();
}

TEST(ExplainCausesTest, ABatchThatIsMuchLargerIsSaid) {
  const std::vector<std::string> evidence = ExplainCausesMustExplain(LastBatchLarger(16)).verdict.evidence;
  EXPECT_THAT(absl::StrJoin(evidence, "\n"), HasSubstr("a batch about 16 times as large as any before it"));
  const std::vector<std::string> alike = ExplainCausesMustExplain(LastBatchLarger(1)).verdict.evidence;
  EXPECT_THAT(absl::StrJoin(alike, "\n"), Not(HasSubstr("times as large")));
}

TEST(ExplainCausesTest, ADeviceWithoutAnythingIsNoted) {
  SeededInput input = LastBatchLarger(16);
  const auto has_note = [](const SeededInput& of) {
    const std::vector<trace::Note> notes = ExplainCausesMustExplain(of).notes;
    return std::any_of(notes.begin(), notes.end(), [](const auto& note) { return note.name == "idle_devices"; });
  };
  EXPECT_FALSE(has_note(input));
  input.snapshot.device_traces.resize(2);
  EXPECT_TRUE(has_note(input));
}

TEST(ExplainCausesTest, AHealthyProgramHasNoWhy) {
  SchemaCheck schema(ExplainSchema());
  for (const HealthyCase& healthy : AllHealthy()) {
    SCOPED_TRACE(healthy.name);
    const answers::Explanation explanation = ExplainCausesMustExplain(healthy.make());
    ExpectSound(explanation, schema);
    EXPECT_THAT(report::ToText(explanation), Not(HasSubstr("\nWHY")));
  }
}

// Every cause that the program can mend says how, wherever it is found as likely or proven; the text shows one.
TEST(ExplainCausesTest, AProgramsOwnCauseComesWithItsRemedy) {
  std::map<std::string, int> offered;
  for (const SeededCase& seeded : AllSeeded()) {
    SCOPED_TRACE(seeded.name);
    const answers::Explanation explanation = ExplainCausesMustExplain(seeded.make());
    const std::string text = report::ToText(explanation);
    for (const whatif::ProgramRemedy& remedy : explanation.why.remedies) {
      ++offered[std::string(analyses::CauseName(remedy.cause))];
    }
    if (explanation.why.remedies.empty()) continue;
    const whatif::ProgramRemedy& first = explanation.why.remedies.front();
    const std::string words = absl::StrJoin(absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty()), " ");
    EXPECT_THAT(words, HasSubstr(first.sentence));
    for (const std::string& line : first.python) EXPECT_THAT(text, HasSubstr(line));
  }
  for (const analyses::CauseSpec& cause : analyses::CauseTable()) {
    if (cause.kind == analyses::CauseKind::kOptimizerTemporaries) continue;  // no more than possible by a trace alone
    if (cause.kind == analyses::CauseKind::kReferenceCycle) continue;        // names alone show it: causes_owners_test
    EXPECT_EQ(offered[std::string(cause.name)] > 0, cause.change != nullptr) << cause.name;
  }
}

TEST(ExplainCausesTest, AProvenFixIsShownWithItsFigures) {
  const std::string text = report::ToText(ExplainCausesMustExplain(PoolCases().front().make()));
  EXPECT_THAT(text, HasSubstr("Freed blocks wait for another stream"));
  EXPECT_THAT(text, HasSubstr("fix: frees that wait for no stream: peak 614.00 MiB -> 314.00 MiB"));
}

}  // namespace
}  // namespace ashlar::tests
