// A dry run that was captured is a trace like any other: written, read and replayed it decides the same, and its
// steps, phases and parts have their names.
#include <string>

#include "allocator/trace/codec.h"
#include "analyzer/analyses/steps/steps.h"
#include "analyzer/formats/torch/torch_snapshot.h"
#include "commands/explain/explain.h"
#include "commands/shared/traced_run.h"
#include "estimator/dry_run.h"
#include "estimator/run_observer.h"
#include "gmock/gmock.h"
#include "tests/estimator/model_file.h"

namespace ashlar::estimate {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

constexpr char kCaptureClassifier[] = "BertForSequenceClassification";

DryRun CaptureMustRun(const DryRunOptions& options, RunCapture& capture) {
  const absl::StatusOr<DryRun> run =
      RunDry(ModelOf("bert-base-uncased", kCaptureClassifier), options, device::AddressOrder::kAscending, &capture);
  EXPECT_TRUE(run.ok()) << run.status();
  return run.ok() ? *run : DryRun();
}

answers::ObservedRun MustObserve(const trace::Snapshot& snapshot) {
  absl::StatusOr<answers::ObservedRun> run = answers::ObserveSnapshot(snapshot, {});
  EXPECT_TRUE(run.ok()) << run.status();
  return *std::move(run);
}

void ExpectSameRun(const answers::ObservedRun& observed, const DryRun& run) {
  EXPECT_EQ(observed.timeline.reserved_peak().bytes, run.peak_reserved_bytes);
  EXPECT_EQ(observed.timeline.allocated_peak().bytes, run.peak_allocated_bytes);
  EXPECT_TRUE(observed.recorded.warm.fidelity.IsExact());
}

TEST(RunCaptureTest, ReplaysToTheSameDecisionsUnderEachVersion) {
  for (const char* torch : {"1.10", "2.6", "2.11"}) {
    RunCapture capture("estimate");
    const DryRun run = CaptureMustRun({.batch = 2, .tokens = 128, .torch_version = torch}, capture);
    const absl::StatusOr<trace::Snapshot> own = trace::Decode(trace::Encode(capture.snapshot()));
    ASSERT_TRUE(own.ok()) << own.status();
    ExpectSameRun(MustObserve(*own), run);
    const absl::StatusOr<trace::Snapshot> torchs =
        formats::ReadTorchSnapshot(formats::WriteTorchSnapshot(capture.snapshot()));
    ASSERT_TRUE(torchs.ok()) << torchs.status();
    ExpectSameRun(MustObserve(*torchs), run);
  }
}

TEST(RunCaptureTest, NamesStepsPhasesAndParts) {
  RunCapture capture("estimate");
  CaptureMustRun(
      {.steps = 4, .batch = 2, .tokens = 128, .attention = kernels::Attention::kEager, .optimizer = "adamw-hf"},
      capture);
  const trace::Snapshot& snapshot = capture.snapshot();
  const answers::ObservedRun observed = MustObserve(snapshot);
  const analyses::Steps steps = analyses::FindSteps(observed.timeline, {}, snapshot.annotations);
  EXPECT_EQ(steps.source, analyses::StepSource::kAnnotations);
  EXPECT_EQ(steps.steps.size(), 4u);
  std::vector<std::string> stacks;
  for (const trace::Event& event : snapshot.device_traces[0]) {
    if (event.action != trace::Action::kAlloc) continue;
    std::string names;
    for (const trace::FrameId frame : snapshot.stacks.stack(event.stack)) {
      names += snapshot.stacks.frame(frame).function + "|";
    }
    stacks.push_back(names);
  }
  EXPECT_THAT(stacks, AllOf(Contains("weights|model|"), Contains("batch|forward|"),
                            Contains("softmax|bert.encoder.layer.0.attention.self|activations|forward|"),
                            Contains("SoftmaxBackward|bert.encoder.layer.0.attention.self|activations|backward|"),
                            Contains(HasSubstr("sqrt(exp_avg_sq)|bert.pooler.dense.weight|"))));
}

// Its device never runs out: what is explained is what was reserved, not what such a device has.
TEST(RunCaptureTest, WithoutACapacityTheDeviceHasNoTotal) {
  const auto total_of = [](const DryRunOptions& options) {
    RunCapture capture("estimate");
    CaptureMustRun(options, capture);
    const absl::StatusOr<answers::Explanation> explained = answers::ExplainSnapshot(capture.snapshot(), {});
    EXPECT_TRUE(explained.ok()) << explained.status();
    return explained.ok() ? explained->accounting.total_bytes : std::nullopt;
  };
  EXPECT_EQ(total_of({.steps = 1, .batch = 2, .tokens = 128}), std::nullopt);
  EXPECT_EQ(total_of({.steps = 1, .batch = 2, .tokens = 128, .capacity_bytes = 12 * kGiB}), 12 * kGiB);
}

TEST(RunCaptureTest, AFailureIsInTheRecord) {
  RunCapture capture("estimate");
  const DryRun run = CaptureMustRun({.batch = 8, .capacity_bytes = 2 * kGiB}, capture);
  ASSERT_FALSE(run.fits);
  std::size_t failures = 0;
  for (const trace::Event& event : capture.snapshot().device_traces[0]) {
    if (event.action != trace::Action::kOom) continue;
    ++failures;
    EXPECT_EQ(event.address, run.moment.device_free_bytes);
    EXPECT_GE(event.size_bytes, run.failed_bytes);
  }
  EXPECT_EQ(failures, 1u);
}

}  // namespace
}  // namespace ashlar::estimate
