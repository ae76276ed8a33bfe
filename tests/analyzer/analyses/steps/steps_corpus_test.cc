// What the steps of the recorded files are, read from their stacks by hand. Printed as a table, with stacks and by
// sizes alone.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "analyzer/analyses/steps/steps.h"
#include "analyzer/formats/input_file.h"
#include "analyzer/formats/torch/torch_snapshot.h"
#include "analyzer/timeline/observed.h"
#include "gtest/gtest.h"
#include "tests/analyzer/timeline/story.h"
#include "tests/corpus_files.h"
#include "tests/shared_dir.h"

namespace ashlar::analyses {
namespace {

// By the eight digits of the file's name: whole steps told with stacks. 075dd064 records five calls of `run_step`
// (its first request recurs at requests 0, 645, 1289, 1933 and 2577 of 3,221); every other file records a single pass
// or step, whatever its layers may repeat.
const std::map<std::string, std::size_t>& WholeSteps() {
  static const auto* const kSteps = new std::map<std::string, std::size_t>{{"075dd064", 5}};
  return *kSteps;
}

const char* SourceName(StepSource source) {
  return source == StepSource::kNone ? "none" : source == StepSource::kPeriod ? "period" : "annotations";
}

TEST(StepsCorpusTest, OnlyTheFileThatRecordsSeveralStepsHasThem) {
  if (!SharedDir()) GTEST_SKIP() << kNoSharedDir;
  std::printf("%-10s %8s | %-11s %5s %6s %6s %6s | sizes alone: %-6s %5s %6s\n", "file", "events", "source", "steps",
              "regul.", "leaks", "phases", "source", "steps", "regul.");
  for (const std::string& file : SnapshotFiles()) {
    const std::string digits = file.substr(file.size() - 18, 8);
    const absl::StatusOr<std::string> bytes = formats::ReadInput(file);
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    const absl::StatusOr<trace::Snapshot> snapshot = formats::ReadTorchSnapshot(*bytes);
    ASSERT_TRUE(snapshot.ok()) << file << ": " << snapshot.status();
    const absl::StatusOr<timeline::Timeline> timeline =
        timeline::MakeObservedTimeline({*snapshot, 0}, timeline::TorchRule());
    ASSERT_TRUE(timeline.ok()) << file << ": " << timeline.status();
    const Steps steps = FindSteps(*timeline, &snapshot->stacks, snapshot->annotations);
    const Steps blind = FindSteps(*timeline, nullptr, {});
    std::printf("%-10s %8lld | %-11s %5zu %6.3f %6zu %6zu | %-19s %5zu %6.3f\n", digits.c_str(),
                static_cast<long long>(timeline->event_count()), SourceName(steps.source), steps.steps.size(),
                steps.regularity, steps.leaks.size(), steps.phases.size(), SourceName(blind.source), blind.steps.size(),
                blind.regularity);
    const auto expected = WholeSteps().find(digits);
    EXPECT_EQ(steps.steps.size(), expected == WholeSteps().end() ? 0 : expected->second) << file;
    EXPECT_TRUE(steps.leaks.empty()) << file;
  }
}

}  // namespace
}  // namespace ashlar::analyses
