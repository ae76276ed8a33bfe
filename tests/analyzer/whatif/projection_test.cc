// Recorded runs, cut off at a random request of a later step, and continued: against what really followed.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "allocator/base/rng.h"
#include "analyzer/analyses/steps/steps.h"
#include "analyzer/formats/input_file.h"
#include "analyzer/formats/torch/torch_snapshot.h"
#include "analyzer/replay/recorded_replay.h"
#include "analyzer/timeline/observed.h"
#include "analyzer/whatif/what_if_input.h"
#include "gtest/gtest.h"
#include "tests/analyzer/timeline/story.h"
#include "tests/shared_dir.h"

namespace ashlar::whatif {
namespace {

struct Cut {
  std::size_t cuts = 0, known = 0;
  std::uint64_t right = 0, all = 0;  // requests
};

// What followed the cut up to the end of its step, in order and size: the step after it may be of other sizes, which
// nobody knows.
void Compare(const trace::RequestTrace& whole, std::size_t step_end, const analyses::Continuation& next, Cut& out) {
  const auto sizes = [&](const std::vector<trace::Op>& ops, std::size_t end) {
    std::vector<std::uint64_t> found;
    for (std::size_t i = next.failed + 1; i < end; ++i) {
      if (ops[i].kind == trace::OpKind::kAlloc) found.push_back(ops[i].bytes);
    }
    return found;
  };
  const std::vector<std::uint64_t> really = sizes(whole.requests, step_end);
  const std::vector<std::uint64_t> projected = sizes(next.requests.requests, next.periods.front());
  const std::size_t count = std::min(really.size(), projected.size());
  out.all += count;
  for (std::size_t i = 0; i < count; ++i) out.right += really[i] == projected[i] ? 1 : 0;
}

// Every capture with at least four whole steps is cut ten times, in its last two steps but one.
Cut CutCapture(const std::string& file) {
  Cut out;
  const absl::StatusOr<std::string> bytes = formats::ReadInput(file);
  const absl::StatusOr<trace::Snapshot> snapshot = formats::ReadTorchSnapshot(*bytes);
  EXPECT_TRUE(snapshot.ok()) << file;
  const absl::StatusOr<timeline::Timeline> observed =
      timeline::MakeObservedTimeline(*snapshot, 0, timeline::TorchRule());
  const absl::StatusOr<replay::SnapshotProgram> program = replay::MakeProgram(*snapshot, 0, timeline::TorchRule());
  if (!observed.ok() || !program.ok()) return out;
  const analyses::Steps steps = analyses::FindSteps(*observed, &snapshot->stacks, snapshot->annotations);
  if (steps.steps.size() < 4) return out;
  std::vector<trace::StackId> stacks;
  std::vector<std::size_t> cuts;
  const analyses::EventRange& range = steps.steps[steps.steps.size() - 2];
  for (std::size_t i = 0; i < program->answers.size(); ++i) {
    const std::int64_t event = program->answers[i].event;
    stacks.push_back(event < 0 ? trace::kNoStack : observed->events()[static_cast<std::size_t>(event)].stack);
    const bool is_asked = program->requests.requests[i].kind == trace::OpKind::kAlloc;
    if (is_asked && event >= range.begin && event < range.end) cuts.push_back(i);
  }
  const analyses::ProgramParts parts(&snapshot->stacks);
  Rng rng(17);
  for (int cut = 0; cut < 10 && !cuts.empty(); ++cut) {
    analyses::CutOffRun run{&program->requests, stacks, cuts[rng.Below(cuts.size())], {}, cuts.front(), &parts};
    const analyses::Continuation next = analyses::Continue(run);
    ++out.cuts;
    if (!next.IsKnown()) continue;
    ++out.known;
    Compare(program->requests, cuts.back() + 1, next, out);
  }
  return out;
}

TEST(ProjectionTest, RecordedRunsGoOnAsTheyDid) {
  if (!SharedDir()) GTEST_SKIP() << kNoSharedDir;
  Cut all;
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(*SharedDir() + "/captures")) {
    const std::string name = entry.path().string();
    if (name.size() > 10 && name.substr(name.size() - 10) == ".pickle.gz") files.push_back(name);
  }
  std::sort(files.begin(), files.end());
  for (const std::string& file : files) {
    const Cut cut = CutCapture(file);
    if (cut.cuts == 0) continue;
    std::printf("%-40s %2zu of %2zu known, %llu of %llu requests right\n", file.substr(file.rfind('/') + 1).c_str(),
                cut.known, cut.cuts, static_cast<unsigned long long>(cut.right),
                static_cast<unsigned long long>(cut.all));
    all.cuts += cut.cuts;
    all.known += cut.known;
    all.right += cut.right;
    all.all += cut.all;
  }
  std::printf("all: %zu of %zu known, %llu of %llu right\n", all.known, all.cuts,
              static_cast<unsigned long long>(all.right), static_cast<unsigned long long>(all.all));
  EXPECT_GE(all.right * 100, all.all * 90);
}

}  // namespace
}  // namespace ashlar::whatif
