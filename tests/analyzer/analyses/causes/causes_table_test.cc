// The table of hits and false alarms. Seeded programs, whose flaw is known because it was put there: it must be found
// first or second. Healthy programs: nothing may be found. Recorded files of real programs: nothing but what a look at
// the file justified, with the reason.
#include <cstdio>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "allocator/base/units.h"
#include "analyzer/analyses/causes/cause_table.h"
#include "analyzer/formats/input_file.h"
#include "analyzer/formats/torch/torch_snapshot.h"
#include "gtest/gtest.h"
#include "tests/analyzer/analyses/causes/cause_cases.h"
#include "tests/corpus_files.h"
#include "tests/expect_page.h"
#include "tests/shared_dir.h"

namespace ashlar::tests {
namespace {

using analyses::CauseFinding;
using analyses::CauseKind;
using analyses::CauseName;

std::string Describe(const std::vector<CauseFinding>& found) {
  std::string out;
  for (const CauseFinding& cause : found) {
    absl::StrAppend(&out, out.empty() ? "" : ", ", CauseName(cause.kind), " (", ConfidenceName(cause.confidence), ", ",
                    FormatBytes(cause.bytes), ")");
  }
  return out.empty() ? "nothing" : out;
}

// 1 for first, 0 for not found.
std::size_t PlaceOf(CauseKind kind, const std::vector<CauseFinding>& found) {
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i].kind == kind) return i + 1;
  }
  return 0;
}

std::string IndexOfCauses() {
  std::string out =
      "# Causes\n\n"
      "Each cause that `ashlar explain` can name has a page: what it is, how it is proven, and code before and after. "
      "`ashlar guide NAME`\nprints it.\n\n"
      "| cause | what is said | the change of the program |\n|---|---|---|\n";
  for (const analyses::CauseSpec& cause : analyses::CauseTable()) {
    absl::StrAppend(&out, "| [", cause.name, "](causes/", cause.name, ".md) | ", cause.sentence, " | ",
                    cause.change == nullptr ? "" : cause.change->sentence, " |\n");
  }
  return out;
}

TEST(CausesTableTest, TheIndexOfTheGuideIsTheTableAndEachCauseHasAPage) {
  ExpectPage("guide/causes.md", IndexOfCauses());
  const std::filesystem::path folder = ASHLAR_SOURCE_DIR "/docs/guide/causes";
  std::set<std::string> pages;
  for (const auto& page : std::filesystem::directory_iterator(folder)) pages.insert(page.path().stem().string());
  for (const analyses::CauseSpec& cause : analyses::CauseTable()) {
    EXPECT_EQ(pages.erase(std::string(cause.name)), 1U) << "docs/guide/causes has no page " << cause.name << ".md";
  }
  EXPECT_TRUE(pages.empty()) << "docs/guide/causes has a page of no cause: " << absl::StrJoin(pages, ", ");
}

// Each kind has its row, and each row all that is said of a cause.
TEST(CausesTableTest, EachRowIsWhole) {
  std::set<std::string> names;
  for (const analyses::CauseSpec& cause : analyses::CauseTable()) {
    SCOPED_TRACE(cause.name);
    EXPECT_TRUE(names.insert(std::string(cause.name)).second);
    EXPECT_FALSE(cause.sentence.empty());
    EXPECT_NE(cause.detect, nullptr);
    EXPECT_EQ(analyses::SpecOf(cause.kind).name, cause.name);
    EXPECT_GT(cause.FreedShare(), 0);
    EXPECT_LE(cause.FreedShare(), 1);
    if (cause.change == nullptr) continue;
    EXPECT_FALSE(cause.change->sentence.empty());
    EXPECT_FALSE(cause.change->python.empty());
  }
  EXPECT_EQ(analyses::CauseTable().back().kind, CauseKind::kReferenceCycle);  // the last kind
}

struct Row {
  int inputs = 0, first = 0, second = 0, missed = 0;
};

TEST(CausesTableTest, SeededCausesAreFoundFirstOrSecond) {
  std::map<CauseKind, Row> table;
  for (const SeededCase& seeded : AllSeeded()) {
    const SeededInput input = seeded.make();
    const Diagnosis diagnosis(input);
    const std::vector<CauseFinding> found = diagnosis.Found();
    const std::size_t place = PlaceOf(seeded.truth, found);
    Row& row = table[seeded.truth];
    ++row.inputs;
    ++(place == 1 ? row.first : place == 2 ? row.second : row.missed);
    EXPECT_TRUE(place == 1 || place == 2)
        << seeded.name << ": " << CauseName(seeded.truth) << " expected, found " << Describe(found)
        << "\n  against it: " << absl::StrJoin(diagnosis.Of(seeded.truth).counter_evidence, "; ")
        << diagnosis.Of(seeded.truth).missing;
  }
  std::printf("%-24s %7s %6s %7s %7s\n", "cause", "inputs", "first", "second", "missed");
  for (const auto& [kind, row] : table) {
    std::printf("%-24s %7d %6d %7d %7d\n", std::string(CauseName(kind)).c_str(), row.inputs, row.first, row.second,
                row.missed);
    EXPECT_GE(row.inputs, 3) << CauseName(kind);
  }
}

// What else is true of the programs with a planted flaw, and may be said of them: a full device is filled by the pass
// that asked, holes are there whoever made them, a graph that is kept fills the device in the end.
const std::map<CauseKind, std::set<CauseKind>>& Companions() {
  using enum CauseKind;
  static const auto* const kCompanions = new std::map<CauseKind, std::set<CauseKind>>{
      {kCapacity, {kActivationsSaved}},
      {kOtherProcess, {kActivationsSaved, kCapacity}},
      {kOtherRanksContexts, {kActivationsSaved, kCapacity}},
      {kWorkspaces, {kActivationsSaved, kCapacity, kMediumRequests}},
      {kPinnedSegment, {kNotExpandable, kOutputsKept}},  // what pins is kept, step after step
      {kGrowingSizes, {kNotExpandable}},
      {kSmallLargeSplit, {kNotExpandable}},
      {kMediumRequests, {kNotExpandable}},
      {kRetryStorm, {kGrowingSizes, kNotExpandable}},
      {kCacheBetweenPhases, {kNotExpandable}},
      {kExceptionHoldsFrames, {kActivationsSaved, kCapacity}},
      {kHooksKeepActivations, {kNotExpandable}},
      {kKvCacheGrows, {kGrowingSizes}},
      {kOutputsKept, {kNotExpandable}},
      {kGraphKeptAlive, {kCapacity, kNotExpandable}},
      {kGradientsKept, {kNotExpandable}},
      {kActivationsSaved, {kCapacity}},
      {kAttentionScores, {kActivationsSaved, kCapacity}},
      {kModelCopies, {kCapacity}},
      {kLogitsSpike, {kCapacity}},
      {kLongLivedTensor, {kCapacity}},
      {kOptimizerState, {kCapacity}},
      {kOptimizerTemporaries, {kOptimizerState}},
  };
  return *kCompanions;
}

// Each detector over the programs of all others: it finds nothing there but what is true as well.
TEST(CausesTableTest, NoDetectorAnswersForAnother) {
  std::map<CauseKind, std::map<CauseKind, int>> hits;  // by the planted cause
  for (const SeededCase& seeded : AllSeeded()) {
    const SeededInput input = seeded.make();
    const std::vector<CauseFinding> found = Diagnosis(input).Found();
    for (const CauseFinding& cause : found) {
      ++hits[seeded.truth][cause.kind];
      if (cause.kind == seeded.truth || cause.is_footnote) continue;
      const auto companions = Companions().find(seeded.truth);
      EXPECT_TRUE(companions != Companions().end() && companions->second.count(cause.kind) > 0)
          << seeded.name << ": " << CauseName(cause.kind) << " said of " << CauseName(seeded.truth) << ": "
          << absl::StrJoin(cause.evidence, "; ");
    }
  }
  for (const auto& [truth, row] : hits) {
    std::printf("%-24s", std::string(CauseName(truth)).c_str());
    for (const auto& [kind, count] : row) std::printf("  %s %d", std::string(CauseName(kind)).c_str(), count);
    std::printf("\n");
  }
}

TEST(CausesTableTest, HealthyProgramsRaiseNoAlarm) {
  const std::vector<HealthyCase> healthy = AllHealthy();
  int alarms = 0;
  for (const HealthyCase& program : healthy) {
    const SeededInput input = program.make();
    const std::vector<CauseFinding> found = Diagnosis(input).Found();
    alarms += found.empty() ? 0 : 1;
    EXPECT_TRUE(found.empty()) << program.name << ": " << Describe(found);
  }
  std::printf("%zu healthy programs, %d with an alarm\n", healthy.size(), alarms);
}

// By the eight digits of the file's name: causes that a look at the file justifies.
const std::map<std::string, std::set<CauseKind>>& Justified() {
  static const auto* const kJustified = new std::map<std::string, std::set<CauseKind>>{
      // Replayed with expandable segments the peak falls from 894 to 742 MiB (17 %).
      {"075dd064", {CauseKind::kNotExpandable}},
      // Attention written out: its own function keeps the softmax of 4 x 16 x 1,024 x 1,024 scores, 40 % of the peak.
      {"1cfc21cd", {CauseKind::kAttentionScores}},
      {"83e7cb0c", {CauseKind::kAttentionScores}},
      // No events, final segments only: 89 blocks hold 9 segments, 386 MiB of holes in 6.2 GiB.
      {"a228b8e3", {CauseKind::kPinnedSegment}},
      // No events, final segments only: 1.28 GiB of holes in 291 segments, most of them behind single small blocks.
      {"c005a26b", {CauseKind::kPinnedSegment}},
  };
  return *kJustified;
}

TEST(CausesTableTest, RecordedFilesRaiseOnlyJustifiedAlarms) {
  if (!SharedDir()) GTEST_SKIP() << kNoSharedDir;
  const std::vector<std::string> files = SnapshotFiles();
  std::map<std::string, std::string> alarms;  // by name, so that the order is the same everywhere
  for (const std::string& name : files) {
    const absl::StatusOr<std::string> bytes = formats::ReadInput(name);
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    absl::StatusOr<trace::Snapshot> snapshot = formats::ReadTorchSnapshot(*bytes);
    ASSERT_TRUE(snapshot.ok()) << name << ": " << snapshot.status();
    SeededInput input;
    input.snapshot = *std::move(snapshot);
    const std::vector<CauseFinding> found = Diagnosis(input).Found();
    const std::string digits = name.substr(name.size() - 18, 8);
    if (!found.empty()) alarms[digits] = Describe(found);
    std::set<CauseKind> kinds;
    for (const CauseFinding& cause : found) kinds.insert(cause.kind);
    const auto expected = Justified().find(digits);
    EXPECT_EQ(kinds, expected == Justified().end() ? std::set<CauseKind>{} : expected->second)
        << name << ": " << Describe(found);
  }
  std::printf("%zu recorded files, %zu with an alarm\n", files.size(), alarms.size());
  for (const auto& [digits, found] : alarms) std::printf("  %s  %s\n", digits.c_str(), found.c_str());
}

}  // namespace
}  // namespace ashlar::tests
