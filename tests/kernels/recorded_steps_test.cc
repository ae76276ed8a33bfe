// Recorded training steps and forward passes of PyTorch 2.11, event by event: the same allocations and frees in the
// same order, hence the same peaks. The recordings (eight, by the same author) are shared test data.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "allocator/core/caching_allocator.h"
#include "allocator/device/sim_device.h"
#include "allocator/policy/options.h"
#include "analyzer/formats/input_file.h"
#include "analyzer/formats/torch/torch_snapshot.h"
#include "analyzer/timeline/observed.h"
#include "gmock/gmock.h"
#include "kernels/autograd/engine.h"
#include "kernels/optim/adamw.h"
#include "tests/corpus_files.h"
#include "tests/documented_row.h"
#include "tests/kernels/step_recorder.h"
#include "tests/kernels/teaching_transformer.h"

namespace ashlar::kernels {
namespace {

struct RecordedStepsRow {
  std::int64_t context;
  bool is_training;
  bool is_bf16;
  std::size_t events;  // allocations and frees of the recording
  std::uint64_t peak_requested_bytes;
  std::uint64_t peak_reserved_mib;
};

std::string RowName(const testing::TestParamInfo<RecordedStepsRow>& info) {
  return absl::StrCat(info.param.is_training ? "Training" : "Inference", info.param.context);
}

std::ostream& operator<<(std::ostream& out, const RecordedStepsRow& row) {
  return out << row.context << (row.is_training ? " training" : " inference") << (row.is_bf16 ? " bf16" : "");
}

class RecordedStep : public testing::TestWithParam<RecordedStepsRow> {};

std::string FileOf(const RecordedStepsRow& row) {
  const std::string part = absl::StrCat("medium_", row.context, row.is_training ? "_training" : "_inference");
  for (const std::string& file : SnapshotFiles()) {
    if (file.find(part) != std::string::npos) return file;
  }
  return {};
}

struct DryRun {
  std::vector<StepEvent> events;
  std::uint64_t peak_requested = 0;
  std::uint64_t peak_reserved = 0;
};

DryRun RunDry(const RecordedStepsRow& row, device::AddressOrder order) {
  constexpr std::int64_t kBatch = 4, kWarmUp = 5;
  device::SimDeviceOptions device_options;
  device_options.address_order = order;
  device::SimDevice device(device_options);
  core::CachingAllocator allocator(&device, *policy::ParseConf("", policy::Compat::kTorch210));
  Context context(&allocator, Stream{0}, *FrameworkOf("2.11"), *GpuNamed("A100"));
  DryRun out;
  {
    Parameters parameters(context);
    TeachingConfig config;
    config.context_length = row.context;
    const TeachingTransformer model(parameters, config);
    TeachingAdamW optimizer(parameters, {});
    const auto ids = [&](std::int64_t batches) {
      return Empty(context, {batches * kBatch, row.context}, DType::kInt64, Part::kBatch);
    };
    const Tensor warm_inputs = ids(kWarmUp), inputs = ids(1);
    const Tensor warm_targets = row.is_training ? ids(kWarmUp) : Tensor();
    const Tensor targets = row.is_training ? ids(1) : Tensor();
    std::unique_ptr<StepEvents> events;
    for (std::int64_t step = 0; step <= kWarmUp; ++step) {
      if (row.is_training) ZeroGradients(parameters);
      if (step == kWarmUp) {
        events = std::make_unique<StepEvents>();
        allocator.SetSink(events.get());
        context.memory().ResetPeak();
      }
      const InferenceMode mode(context, !row.is_training);
      Tensor output, loss;
      {
        const Autocast autocast(context, row.is_bf16, DType::kBFloat16);
        output = model.Forward(inputs);
        if (row.is_training) loss = TeachingCrossEntropy(output, targets);
      }
      if (row.is_training) {
        Backward(loss);
        optimizer.Step();
      }
      if (step < kWarmUp || !row.is_training) Release(output, loss);
      if (step == kWarmUp) {
        allocator.SetSink(nullptr);
        out.peak_requested = context.memory().peak_bytes();
      }
    }
    EXPECT_TRUE(context.memory().ok()) << context.memory().status();
    out.events = events->list();
    out.peak_reserved = static_cast<std::uint64_t>(allocator.stats().reserved_bytes.all().peak);
  }
  EXPECT_EQ(context.memory().live_by_part()[static_cast<std::size_t>(Part::kWeights)], 0u);
  EXPECT_TRUE(allocator.Validate().ok());
  return out;
}

std::vector<StepEvent> Recorded(const std::string& file) {
  const absl::StatusOr<std::string> bytes = formats::ReadInput(file);
  const absl::StatusOr<trace::Snapshot> snapshot = formats::ReadTorchSnapshot(*bytes);
  StepEvents events;
  for (const trace::EventList& device : snapshot->device_traces) {
    for (const trace::Event& event : device) events.OnEvent(event, 0);
  }
  return events.list();
}

TEST_P(RecordedStep, AgreesEventByEvent) {
  if (!SharedDir()) GTEST_SKIP() << kNoSharedDir;
  const std::string file = FileOf(GetParam());
  if (file.empty()) GTEST_SKIP() << "this recording is not among the shared test data";
  const std::vector<StepEvent> recorded = Recorded(file);
  ASSERT_EQ(recorded.size(), GetParam().events);
  const DryRun run = RunDry(GetParam(), device::AddressOrder::kAscending);
  const auto differ = std::mismatch(recorded.begin(), recorded.end(), run.events.begin(), run.events.end());
  if (differ.first != recorded.end() && differ.second != run.events.end()) {
    FAIL() << "event " << differ.first - recorded.begin() << " of " << recorded.size() << ": recorded "
           << ToString(*differ.first) << ", dry " << ToString(*differ.second);
  }
  ASSERT_EQ(run.events.size(), recorded.size());
}

// Which segment a request splits depends on the driver's addresses: both orders. docs/guide/estimate_accuracy.md has
// the same numbers.
TEST_P(RecordedStep, PeaksAgree) {
  const RecordedStepsRow& row = GetParam();
  const DryRun up = RunDry(row, device::AddressOrder::kAscending);
  const DryRun down = RunDry(row, device::AddressOrder::kDescending);
  for (const DryRun* run : {&up, &down}) {
    EXPECT_EQ(run->peak_requested, row.peak_requested_bytes);
    EXPECT_NEAR(static_cast<double>(run->peak_reserved), static_cast<double>(row.peak_reserved_mib * kMiB),
                0.01 * static_cast<double>(row.peak_reserved_mib * kMiB));
  }
  const std::string label = absl::StrCat(row.is_training ? "training, " : "inference, ", row.context, " tokens, ",
                                         row.is_bf16 ? "bf16" : "fp32");
  const std::string cells =
      absl::StrFormat("%s | %.1f | %s", FormatCount(row.events), static_cast<double>(up.peak_requested) / kMiB,
                      tests::ErrorCells(row.peak_reserved_mib, up.peak_reserved / kMiB, down.peak_reserved / kMiB));
  EXPECT_THAT(tests::DocumentedRow(label), testing::EndsWith(cells));
}

INSTANTIATE_TEST_SUITE_P(, RecordedStep,
                         testing::Values(RecordedStepsRow{128, true, false, 12831, 7013335044, 6900},
                                         RecordedStepsRow{256, true, false, 13027, 9103544320, 8836},
                                         RecordedStepsRow{512, true, true, 14961, 12426629128, 12074},
                                         RecordedStepsRow{1024, true, true, 14961, 24207167496, 24012},
                                         RecordedStepsRow{128, false, false, 2560, 1736962048, 1682},
                                         RecordedStepsRow{256, false, false, 2560, 1793775616, 1778},
                                         RecordedStepsRow{512, false, true, 3332, 1949343744, 1890},
                                         RecordedStepsRow{1024, false, false, 2560, 2877435904, 3056}),
                         RowName);

}  // namespace
}  // namespace ashlar::kernels
