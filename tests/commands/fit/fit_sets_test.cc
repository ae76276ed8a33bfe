// The order of sets, and what an answer prints.
#include "commands/fit/fit_sets.h"

#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "commands/fit/fit.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/commands/schema_check.h"

namespace ashlar::answers {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr std::uint64_t kMiBytes = std::uint64_t{1} << 20;

FitChange ChangeOf(const std::string& name, int price, const std::string& group = "", const std::string& alters = "") {
  FitChange out;
  out.name = name;
  out.title = "the change " + name;
  out.group = group;
  out.price = price;
  out.costs = price == 0 ? "none" : "more time";
  out.alters = alters;
  out.applies = true;
  out.where = "train.py:" + std::to_string(price + 1);
  out.lines = {"write(" + name + ")"};
  return out;
}

FitRow RowOf(const std::string& name, FitVerdict verdict, std::uint64_t mib) {
  FitRow out;
  out.changes = {name};
  out.verdict = verdict;
  out.peak_reserved_bytes = mib * kMiBytes;
  out.device_bytes = (mib + 400) * kMiBytes;
  return out;
}

FitAnswer SomeAnswer() {
  FitAnswer out;
  out.program = {"python", "train.py"};
  out.card = "T4";
  out.total_bytes = 15000 * kMiBytes;
  out.steps = 10;
  out.changes = {ChangeOf("free", 0), ChangeOf("half", 20, "batch"), ChangeOf("quarter", 40, "batch"),
                 ChangeOf("blocks", 50), ChangeOf("bf16", 10, "precision", "precision")};
  out.base = RowOf("", FitVerdict::kFails, 20000);
  out.base.changes = {};
  out.base.failed_step = 2;
  out.rows = {RowOf("free", FitVerdict::kFails, 19000), RowOf("half", FitVerdict::kFails, 16000)};
  return out;
}

FitValues SomeValues() {
  FitValues out;
  out.name = "--batch-size";
  out.values = {{16, RowOf("", FitVerdict::kFits, 8000)}, {24, RowOf("", FitVerdict::kFits, 9000)}, {25, {}}};
  for (FitValues::Value& one : out.values) one.row.changes.clear();
  out.values[2].row.verdict = FitVerdict::kFails;
  out.values[2].row.failed_step = 1;
  out.found = 24;
  out.next = 25;
  return out;
}

std::vector<std::vector<std::string>> ChangesOf(const std::vector<FitSet>& sets) {
  std::vector<std::vector<std::string>> out;
  for (const FitSet& set : sets) out.push_back(set.changes);
  return out;
}

std::string InOneLine(const std::string& text) {
  const std::vector<std::string> words = absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty());
  return absl::StrJoin(words, " ");
}

// Every object of the schema is there.
void ExpectBySchema(const std::vector<FitAnswer>& answers) {
  tests::SchemaCheck check(nlohmann::json::parse(std::ifstream(ASHLAR_SOURCE_DIR "/docs/schemas/fit.schema.json")));
  EXPECT_THAT(check.SchemaFaults(), IsEmpty());
  for (const FitAnswer& answer : answers) check.Check(nlohmann::json::parse(report::ToJson(answer)));
  EXPECT_THAT(check.errors(), IsEmpty());
  EXPECT_THAT(check.UnseenObjects(), IsEmpty());
}

using Names = std::vector<std::string>;

TEST(FitSetsTest, TheCheapestFirstAndOneOfAGroup) {
  EXPECT_THAT(ChangesOf(SetsByPrice(SomeAnswer())),
              ElementsAre(Names{"free"}, Names{"free", "half"}, Names{"free", "quarter"}, Names{"free", "blocks"},
                          Names{"free", "half", "blocks"}, Names{"free", "quarter", "blocks"}));
  EXPECT_THAT(SetsByPrice(SomeAnswer())[4].priced, ElementsAre("half", "blocks"));
}

TEST(FitSetsTest, WhatAltersResultsIsInNoSetButWhereItIsAllowed) {
  FitAnswer answer = SomeAnswer();
  for (const FitSet& set : SetsByPrice(answer)) EXPECT_THAT(set.changes, Not(testing::Contains("bf16")));
  answer.allowed = {"precision"};
  EXPECT_THAT(SetsByPrice(answer)[1].changes, ElementsAre("free", "bf16"));
  EXPECT_EQ(SetsByPrice(answer).size(), 12U);
}

TEST(FitSetsTest, WhatDoesNotApplyOrDidNotRunIsInNone) {
  FitAnswer answer = SomeAnswer();
  answer.changes[3].applies = false;
  answer.rows[1].why_not = "it ended with exit code 1";
  EXPECT_THAT(ChangesOf(SetsByPrice(answer)), ElementsAre(Names{"free"}, Names{"free", "quarter"}));
}

// One of a group may cost nothing: another of it takes its place.
TEST(FitSetsTest, APricedChangeTakesThePlaceOfAFreeOneOfItsGroup) {
  FitAnswer answer = SomeAnswer();
  answer.changes = {ChangeOf("fused", 0, "optimizer"), ChangeOf("other", 5, "optimizer")};
  EXPECT_THAT(ChangesOf(SetsByPrice(answer)), ElementsAre(Names{"fused"}, Names{"other"}));
  answer.changes = {ChangeOf("other", 5, "optimizer"), ChangeOf("fused", 0, "optimizer")};
  EXPECT_THAT(ChangesOf(SetsByPrice(answer)), ElementsAre(Names{"fused"}, Names{"other"}));
}

TEST(FitReportTest, SaysWhatFitsWhatItSavesAndWhatToWrite) {
  FitAnswer answer = SomeAnswer();
  answer.changes.push_back(ChangeOf("fused", 1));
  answer.changes.back().applies = false;
  answer.changes.back().why_not = "already on: train.py:88";
  FitRow set = RowOf("blocks", FitVerdict::kFits, 8000);
  set.ran_on_card = true;
  answer.sets = {set};
  answer.set = set;
  const std::string text = InOneLine(report::ToText(answer));
  for (const char* part :
       {"fails at step 2 on T4 of 14.65 GiB as it is", "fits with blocks: peak reserved 7.81 GiB", "6.45 GiB to spare",
        "20 %", "fused: already on: train.py:88", "WRITE", "train.py:51 the change blocks write(blocks)",
        "python -m ashlar_gpu.fit --with blocks", "--allow precision"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  EXPECT_THAT(report::ToMarkdown(answer), HasSubstr("| blocks | 7.81 GiB | 60 % | fits | train.py:51 | more time |"));
  FitAnswer without = answer;
  without.set.reset();
  without.untried = 7;
  EXPECT_THAT(InOneLine(report::ToText(without)),
              AllOf(HasSubstr("no set that was tried fits"), HasSubstr("7 dearer sets"), Not(HasSubstr("WRITE"))));
  FitAnswer varied = SomeAnswer();
  varied.varied = SomeValues();
  FitAnswer cards = SomeAnswer();
  cards.cards = {{cards.base, "L4", 22000 * kMiBytes, true}, {RowOf("half", FitVerdict::kFits, 16000), "", 0, false}};
  answer.held = {{"parameters", kMiBytes}};
  answer.base.work = answer.set->work = FitWork{.operations = 7};
  answer.set->cache = FitCache{.tokens = 5000, .longest_request = 2000, .most_requests = 256};
  answer.set->diff = {"--- train.py\n+++ train.py\n", {"blocks"}};
  answer.settings.resize(1);
  answer.estimates.resize(1);
  ExpectBySchema({answer, without, varied, cards});
  EXPECT_THAT(
      InOneLine(report::ToText(cards)),
      AllOf(HasSubstr("the least card: L4 of 21.48 GiB as it is; no card of the table has room for it with half"),
            HasSubstr("proven"), HasSubstr("none of the table")));
  EXPECT_THAT(report::ToMarkdown(cards), HasSubstr("| as it is | 19.53 GiB | L4 of 21.48 GiB | run on it | none |"));
}

TEST(FitReportTest, APriceIsCountedAndItsTimeAnEstimate) {
  FitAnswer answer = SomeAnswer();
  answer.set = RowOf("blocks", FitVerdict::kFits, 8000);
  answer.base.work = FitWork{.operations = 3'000'000'000, .memory_bytes = 10'000'000, .bus_bytes = kMiBytes};
  answer.set->work = FitWork{.operations = 4'000'000'000,
                             .narrow_operations = 3'000'000'000,
                             .memory_bytes = 90'000'000,
                             .bus_bytes = 2 * kMiBytes};
  EXPECT_THAT(InOneLine(report::ToText(answer)),
              AllOf(HasSubstr("4e+09 floating-point operations, where it is 3e+09 as it is: x 1.33"),
                    HasSubstr("2.00 MiB between host and device, where it is 1.00 MiB"), Not(HasSubstr("estimated"))));
  answer.speed =
      FitSpeed{.operations = 1'000'000'000'000, .narrow_operations = 2'000'000'000'000, .memory_bytes = 30'000'000'000};
  EXPECT_NEAR(RooflineSeconds(*answer.base.work, *answer.speed), 3e-3, 1e-9) << "by its operations";
  EXPECT_NEAR(RooflineSeconds(*answer.set->work, *answer.speed), 3e-3, 1e-9)
      << "by its traffic: 1 + 1.5 ms of operations";
  EXPECT_THAT(InOneLine(report::ToText(answer)),
              HasSubstr("(1.0 TFLOP/s, 2.0 in 16 bits, 30 GB/s) a step takes 3 ms at least"));
}

// A rough price is one of the table; a counted one is how much longer the step takes, where no more goes over the bus.
TEST(FitSetsTest, SetsGoByWhatWasCounted) {
  FitAnswer answer = SomeAnswer();
  const auto row = [&](const std::string& name) -> FitRow& {
    for (FitRow& of : answer.rows) {
      if (of.changes == Names{name}) return of;
    }
    return answer.rows.emplace_back(RowOf(name, FitVerdict::kFits, 8000));
  };
  answer.base.work = FitWork{.operations = 1000};
  row("blocks").work = FitWork{.operations = 1010};
  row("half").work = FitWork{.operations = 1300};
  EXPECT_NEAR(answer.PriceOf(answer.ChangeNamed("blocks")), 1, 1e-9);
  EXPECT_EQ(answer.PriceOf(answer.ChangeNamed("quarter")), answer.ChangeNamed("quarter").price) << "not counted";
  const std::vector<Names> sets = ChangesOf(SetsByPrice(answer));
  EXPECT_EQ(sets[1], (Names{"free", "blocks"}));
  row("blocks").work->bus_bytes = 1;
  EXPECT_EQ(answer.PriceOf(answer.ChangeNamed("blocks")), answer.ChangeNamed("blocks").price);
}

// What is in the diff needs no line of its own.
TEST(FitReportTest, ShowsTheDiffAndTheLinesThatItHasNot) {
  FitAnswer answer = SomeAnswer();
  answer.set = RowOf("blocks", FitVerdict::kFits, 8000);
  answer.set->changes.push_back("half");
  answer.set->diff = {"--- train.py\n+++ train.py\n@@ -1 +1 @@\n-a\n+b\n", {"blocks"}};
  const std::string text = report::ToText(answer);
  EXPECT_THAT(text, AllOf(HasSubstr("a diff of blocks, for patch -p0:\n\n--- train.py\n+++ train.py\n@@ -1 +1 @@\n-a"),
                          HasSubstr("write(half)"), Not(HasSubstr("write(blocks)"))));
  EXPECT_THAT(report::ToMarkdown(answer), HasSubstr("```diff\n--- train.py"));
}

TEST(FitReportTest, WhatTheHostHasNoRoomForFails) {
  FitAnswer answer = SomeAnswer();
  answer.host_memory_bytes = 1000 * kMiBytes;
  answer.rows.push_back(RowOf("blocks", FitVerdict::kFails, 8000));
  answer.rows.back().host_bytes = 2000 * kMiBytes;
  answer.rows.back().is_over_host = true;
  EXPECT_THAT(InOneLine(report::ToText(answer)),
              AllOf(HasSubstr("fails: the host"), HasSubstr("1.95 GiB on the host, which has 1000.00 MiB")));
}

TEST(FitReportTest, SaysTheBestSettingOfEachRunThatWasReplayed) {
  FitAnswer answer = SomeAnswer();
  answer.settings.resize(3);
  answer.settings[0].conf = "expandable_segments:True";
  answer.settings[0].fits = true;
  answer.settings[0].peak_reserved_bytes = 3000 * kMiBytes;
  answer.settings[1].changes = {"half"};
  answer.settings[1].is_own = true;
  answer.settings[2].why_not = "it has no history";
  EXPECT_THAT(InOneLine(report::ToText(answer)),
              AllOf(HasSubstr("SETTINGS"), HasSubstr("as it is expandable_segments:True 2.93 GiB fits by replay"),
                    HasSubstr("half policy:ashlar 0 B fails by replay"), HasSubstr("as it is - - it has no history")));
}

TEST(FitReportTest, SaysWhatNoRunCanMakeFromOutside) {
  FitAnswer answer = SomeAnswer();
  EXPECT_THAT(report::ToText(answer), Not(HasSubstr("ESTIMATED")));
  answer.estimates = {{.change = "keep no scores",
                       .where = "train.py:68 forward",
                       .bytes = 3 * 1024 * kMiBytes,
                       .lines = {"x = sdpa(q, k, v)"}}};
  EXPECT_THAT(report::ToText(answer),
              AllOf(HasSubstr("\nESTIMATED"), HasSubstr("\n  3.00 GiB  keep no scores (train.py:68 forward)\n"),
                    HasSubstr("\n      x = sdpa(q, k, v)\n")));
  EXPECT_THAT(report::ToMarkdown(answer), HasSubstr("- estimated: 3.00 GiB  keep no scores (train.py:68 forward)"));
  EXPECT_THAT(report::ToJson(answer), HasSubstr("\"where\": \"train.py:68 forward\""));
}

TEST(FitSetsTest, WhatIsLeftAsItIsIsNeededAtLeast) {
  FitAnswer answer = SomeAnswer();
  answer.outside_bytes = 100;
  answer.held = {{"parameters", 1000}, {"gradients", 20}, {"states", 3}};
  answer.changes[4].lessens = {"gradients", "states"};
  EXPECT_EQ(answer.LeastBytes({}), 1123U);
  EXPECT_EQ(answer.LeastBytes({"half", "bf16"}), 1100U);
}

TEST(FitReportTest, SaysTheLargestValueAndThatTheNextOneFails) {
  FitAnswer answer = SomeAnswer();
  answer.varied = SomeValues();
  const std::string text = InOneLine(report::ToText(answer));
  for (const char* part : {"--batch-size 24 is the largest that fits on T4 of 14.65 GiB: peak reserved 8.79 GiB",
                           "25 fails at step 1", "VALUES", "16 7.81 GiB fits", "25 - fails at step 1"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  EXPECT_THAT(text, Not(HasSubstr("CHANGES")));
  EXPECT_THAT(report::ToMarkdown(answer), HasSubstr("| 25 | - | fails at step 1 |"));
  answer.kept_away = {"out/model.pt"};
  answer.not_sent = {"192.0.2.1:443"};
  EXPECT_THAT(InOneLine(report::ToText(answer)),
              AllOf(HasSubstr("not written by the runs that followed: out/model.pt"),
                    HasSubstr("not connected to by the runs that followed: 192.0.2.1:443")));
  answer.varied->next.reset();
  answer.varied->is_over = true;
  EXPECT_THAT(InOneLine(report::ToText(answer)), AllOf(HasSubstr("no larger one was run"), HasSubstr("--budget")));
  answer.varied->found.reset();
  EXPECT_THAT(report::ToText(answer), HasSubstr("no --batch-size that was tried fits"));
}

}  // namespace
}  // namespace ashlar::answers
