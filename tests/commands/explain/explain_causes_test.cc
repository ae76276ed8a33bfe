// Causes as `ashlar explain` shows them: in the text within one screen, in the JSON all of them by the schema.
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
    bool is_found = false;
    EXPECT_THAT(text, HasSubstr(absl::StrCat("ashlar guide ",
                                             analyses::CauseName(explanation.why.causes[0].finding.kind), ")")));
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
